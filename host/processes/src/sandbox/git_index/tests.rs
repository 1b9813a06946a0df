//! Indexes as git writes them, and as somebody forges them.

use std::io::Write as _;
use std::time::Duration;

use super::*;

const FILE: u32 = 0o100_644;
const FOLDER: u32 = 0o040_000;

/// What an index says.
struct Forged {
    version: u32,
    format: ObjectFormat,
    /// Mode, path, and whether there are more flags.
    entries: Vec<(u32, Vec<u8>, bool)>,
    extensions: Vec<(&'static [u8; 4], Vec<u8>)>,
    /// Entries in a part, where it has some and says where its entries end.
    a_part: Option<usize>,
}

impl Forged {
    fn of(paths: &[&str]) -> Self {
        let entries = paths.iter().map(|path| (FILE, path.as_bytes().to_vec(), false)).collect();
        Self { version: 2, format: ObjectFormat::Sha1, entries, extensions: Vec::new(), a_part: None }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut all = b"DIRC".to_vec();
        all.extend(self.version.to_be_bytes());
        all.extend((self.entries.len() as u32).to_be_bytes());
        let (mut before, mut parts): (&[u8], Vec<u8>) = (b"", 1_u32.to_be_bytes().to_vec());
        for (number, (mode, path, is_extended)) in self.entries.iter().enumerate() {
            if let Some(count) = self.a_part.filter(|count| number % count == 0) {
                let left = count.min(self.entries.len() - number);
                parts.extend([(all.len() as u32).to_be_bytes(), (left as u32).to_be_bytes()].concat());
            }
            let is_first = self.a_part.is_some_and(|count| number % count == 0);
            let begin = all.len();
            all.extend([0; MODE]);
            all.extend(mode.to_be_bytes());
            all.extend(vec![0; NUMBERS - MODE - 4 + self.format.bytes()]);
            let flags = path.len().min(0xfff) as u16 | if *is_extended { EXTENDED } else { 0 };
            all.extend(flags.to_be_bytes());
            all.extend(is_extended.then_some([0, 0]).into_iter().flatten());
            if self.version == 4 {
                let shared = path.iter().zip(before).take_while(|(a, b)| a == b && !is_first).count();
                all.extend(varint(before.len() - shared));
                all.extend([&path[shared..], b"\0"].concat());
            } else {
                all.extend(path);
                all.extend(vec![0; 8 - (all.len() - begin) % 8]);
            }
            before = path;
        }
        let end = all.len() as u32;
        let extensions = self.extensions.iter().map(|(name, bytes)| (*name, bytes.clone()));
        for (name, bytes) in extensions.chain(self.a_part.map(|_| (b"IEOT", parts))) {
            all.extend([name.as_slice(), &(bytes.len() as u32).to_be_bytes(), &bytes].concat());
        }
        if self.a_part.is_some() {
            all.extend(
                [b"EOIE".as_slice(), &(4 + self.format.bytes() as u32).to_be_bytes(), &end.to_be_bytes()].concat(),
            );
            all.extend(vec![0; self.format.bytes()]);
        }
        all.extend(vec![7; self.format.bytes()]);
        all
    }

    fn check(&self) -> Checked<Option<String>> {
        check(&self.bytes(), self.format)
    }
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = vec![(number & 0x7f) as u8];
    while number > 0x7f {
        number = (number >> 7) - 1;
        bytes.insert(0, 0x80 | (number & 0x7f) as u8);
    }
    bytes
}

fn check(bytes: &[u8], format: ObjectFormat) -> Checked<Option<String>> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    // Whoever holds it may have read it.
    io::Seek::rewind(&mut file).unwrap();
    check_index(&file, format, Instant::now() + Duration::from_secs(60))
}

fn long() -> String {
    "long/".repeat(400) + "x"
}

/// In each version, with both lengths of names, and with and without more flags.
fn in_all_ways(paths: &[&str]) -> Vec<Forged> {
    let all = [(2, ObjectFormat::Sha1), (3, ObjectFormat::Sha1), (4, ObjectFormat::Sha1), (4, ObjectFormat::Sha256)];
    let all = all.into_iter().chain([(2, ObjectFormat::Sha256)]);
    all.flat_map(|(version, format)| [(version, format, false), (version, format, true)])
        .map(|(version, format, is_extended)| {
            let mut index = Forged { version, format, ..Forged::of(paths) };
            index.entries.iter_mut().for_each(|entry| entry.2 = is_extended);
            index
        })
        .collect()
}

#[test]
fn what_git_writes_is_fine() {
    let long = long();
    for mut index in in_all_ways(&[".gitignore", "a", "a/b", "a/bc", "b", &long, &(long.clone() + "y"), "m/n"]) {
        index.check().unwrap();
        index.extensions = vec![(b"TREE", vec![1; 300]), (b"REUC", Vec::new())];
        index.check().unwrap();
        for count in [1, 3, 8, 100] {
            index.a_part = Some(count);
            index.check().unwrap();
        }
    }
    Forged::of(&[]).check().unwrap();
    let mut sparse = Forged::of(&["a/b/", "c"]);
    sparse.entries[0].0 = FOLDER;
    sparse.check().unwrap();
    let mut split = Forged::of(&["", "", "new"]);
    split.extensions = vec![(b"TREE", Vec::new()), (b"link", vec![1; 40])];
    assert_eq!(split.check().unwrap(), Some("01".repeat(20)));
}

#[test]
fn what_says_twice_on_which_other_one_it_goes_is_no_index_of_git() {
    // Git takes the last one.
    let mut split = Forged::of(&["a"]);
    split.extensions = vec![(b"link", vec![0; 40]), (b"TREE", Vec::new()), (b"link", vec![1; 40])];
    assert!(matches!(split.check(), Err(IndexFault::Malformed(_))));
}

#[test]
fn what_git_never_writes_is_named_in_whatever_way_it_stands_there() {
    for path in [".git/config", "/etc/passwd", "../../x", "a/../../x", "a/.GIT/hooks/x", "a//b", "git~1/config", "a/"] {
        let deep = format!("a/{}b", "c/".repeat(100));
        for mut index in in_all_ways(&["a/b", "a/c/d", &deep, path, "z"]) {
            assert!(matches!(index.check(), Err(IndexFault::Path(found)) if found == path), "{path}");
            index.a_part = Some(2);
            assert!(matches!(index.check(), Err(IndexFault::Path(_))), "{path}");
        }
    }
    // What a path shares with the one before is looked at with it.
    let mut index = Forged { version: 4, ..Forged::of(&["a/.gi", "a/.git", "a/.gitx"]) };
    assert!(matches!(index.check(), Err(IndexFault::Path(found)) if found == "a/.git"));
    index.entries.remove(1);
    index.check().unwrap();
    let mut sparse = Forged::of(&["../x/"]);
    sparse.entries[0].0 = FOLDER;
    assert!(matches!(sparse.check(), Err(IndexFault::Path(_))));
    assert!(Forged::of(&[""]).check().unwrap_err().is_forged());
}

#[test]
fn one_that_git_could_read_in_another_way_is_not_as_git_writes_it() {
    let parted = Forged { version: 4, a_part: Some(2), ..Forged::of(&["aa", "aab", "aac", "aad"]) };
    let whole = parted.bytes();
    let at = |mark: &[u8]| whole.windows(4).position(|four| four == mark).unwrap();
    // Behind the header, a path of two letters, and one of its letters more.
    let second_part = 12 + (62 + 1 + 3) + (62 + 1 + 2);
    for (place, what) in [
        (at(b"IEOT") + 15, "begins elsewhere"),
        (at(b"IEOT") + 19, "count"),
        (at(b"EOIE") + 11, "ends elsewhere"),
        (second_part + 62, "shares with the part before"),
        (11, "count of entries"),
    ] {
        let mut forged = whole.clone();
        forged[place] = forged[place].wrapping_sub(1);
        let found = check(&forged, parted.format);
        assert!(found.as_ref().is_err_and(IndexFault::is_forged), "{what}: {found:?}");
    }
    for behind in [3, 5, 9] {
        let mut padded = Forged::of(&["abc", "b"]).bytes();
        padded[12 + 62 + behind] = b'/';
        assert!(check(&padded, ObjectFormat::Sha1).unwrap_err().is_forged(), "what stands behind a path");
    }
    let mut ended = Forged::of(&["abc"]).bytes();
    ended[12 + 62 + 1] = 0;
    assert!(check(&ended, ObjectFormat::Sha1).unwrap_err().is_forged(), "a path that ends before it says");
}

#[test]
fn rubbish_is_said_and_what_is_newer_is_no_forgery() {
    let whole = Forged { version: 4, a_part: Some(2), ..Forged::of(&["aa", "aab", "aac", &long()]) }.bytes();
    for length in 0..whole.len() - 150 {
        let found = check(&whole[..length], ObjectFormat::Sha1);
        assert!(found.is_err_and(|fault| fault.is_forged()), "{length}");
    }
    for place in 0..whole.len() {
        let mut changed = whole.clone();
        changed[place] ^= 0xff;
        let _whatever_it_says = check(&changed, ObjectFormat::Sha1);
    }
    let newer = Forged { version: 5, ..Forged::of(&["../x"]) }.check().unwrap_err();
    assert!(matches!(newer, IndexFault::Version(5)) && !newer.is_forged());
    let too_long = Forged { version: 4, ..Forged::of(&[&"x".repeat(MAX_PATH + 1)]) }.check();
    assert!(too_long.is_err_and(|fault| fault.is_forged()));
}

#[test]
fn many_entries_are_looked_through_in_little_time() {
    let paths: Vec<String> =
        (0..200_000).map(|number| format!("some/folders/{}/file-{number}", number / 100)).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    for version in [2, 4] {
        let bytes = Forged { version, ..Forged::of(&paths) }.bytes();
        let begin = Instant::now();
        check(&bytes, ObjectFormat::Sha1).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    }
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&Forged::of(&paths[..9]).bytes()).unwrap();
    io::Seek::rewind(&mut file).unwrap();
    assert!(matches!(check_index(&file, ObjectFormat::Sha1, Instant::now()), Err(IndexFault::Late)));
}
