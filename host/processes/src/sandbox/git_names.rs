//! Paths that git itself never puts into an index or a list of conflicts: by them it would write, delete or read files
//! outside of the work tree, or in its own folder. Where it reads those files back it does not look at them again.
//!
//! As `verify_path` of git has it on every system, with what NTFS takes for `.git` among it.

/// What leads to git's own folder, in any case.
const OF_GIT: [&[u8]; 2] = [b".git", b"git~1"];

/// Whether git may have written this path, from the root of a work tree.
pub(super) fn is_gits(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(is_part)
}

fn is_part(part: &[u8]) -> bool {
    !matches!(part, b"" | b"." | b"..") && !part.contains(&0) && !leads_to_git(part)
}

fn leads_to_git(part: &[u8]) -> bool {
    let begins = |name: &&[u8]| part.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let Some(name) = OF_GIT.into_iter().find(begins) else { return false };
    let mut rest = part.iter().skip(name.len()).take_while(|byte| !matches!(byte, b'\\' | b':'));
    rest.all(|byte| matches!(byte, b'.' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_out_or_into_git_s_own_folder_are_none_of_git_s() {
        let bad = "|/|/etc/passwd|../x|a/../../x|a/..|./a|a/.|a//b|a/|.git|.git/config|a/.GIT/hooks/x|.gIt|git~1/config|\
                   a/GIT~1|.git./config|.git /x|.git::$INDEX_ALLOCATION/x|.git\\config|.git . .";
        for path in bad.split('|') {
            assert!(!is_gits(path.as_bytes()), "{path}");
        }
        let good = "a|a/b|.gitignore|.gitmodules|.github/x|a/.gitattributes|git|git~2|git~10|..a|...|a./b|x.git/config|.g|g\\.git";
        for path in good.split('|') {
            assert!(is_gits(path.as_bytes()), "{path}");
        }
        assert!(!is_gits(b"a\0b") && is_gits(b"\xff/\xfe"));
    }
}
