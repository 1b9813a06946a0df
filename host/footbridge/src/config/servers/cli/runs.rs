//! What programs do with their words beyond data: commands that they start, lines for a shell, code of their own.
//!
//! Options are read as `getopt` reads them, each program's by the table. Of what is not in it nothing is known here.

use std::path::Path;

/// A word: what is the same in each call, whether there is anything in it that a caller says freely, and whether it is there
/// in each.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) has_place: bool,
    pub(super) is_always: bool,
    /// Whether it begins with a place.
    pub(super) is_open: bool,
}

impl Part {
    /// Whether it is another word in each call, from its beginning or wherever.
    pub(super) fn may_be_chosen(&self) -> bool {
        self.has_place || self.is_open
    }
}

/// What is done with some of the words.
#[derive(Debug)]
pub(super) enum Use {
    /// They are a command: a program and its arguments.
    Command(Vec<Part>),
    /// What a caller says is in a line for a shell.
    Line,
    /// It is code behind this word.
    Code(String),
    /// It is code that can start programs, unless this word is there.
    Unless(&'static str),
}

/// What a program does with words that are no options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    /// They are data, and options may stand among them.
    Data,
    /// The first is a name, behind which options are those of what it names.
    Subcommand,
    /// The first is code unless an option has some; with one of these options it can start nothing.
    Code(&'static [&'static str]),
    /// Behind so many words there is a command.
    Command(usize),
    /// Behind words that set variables there is a command.
    Assigned,
    /// Behind so many words, all are put together as a line for a shell.
    Line(usize),
    /// As `Line(0)`, up to a word of colons; without one before that, each behind it is a line.
    Lines,
    /// Commands stand behind these, up to `;` or `+`.
    ForEach,
    /// Those that begin with `+` are code.
    Plus,
}

/// How programs read their words: their names, options that a value follows, and options whose value is code, or a file
/// with some. Letters of short options come first, then long ones.
struct Reads(&'static str, &'static str, &'static str, Rest);

/// Each program of which something is known.
const ALL: [Reads; 40] = [
    Reads("env", "uCa --unset --chdir --argv0", "S --split-string", Rest::Assigned),
    Reads("sudo", "CDghpRrTtUu --user --group --chdir --chroot --host --prompt --role --type", "", Rest::Assigned),
    Reads("doas", "Cu", "", Rest::Assigned),
    Reads("nohup setsid unbuffer busybox toybox catchsegv fakeroot entr", "", "", Rest::Command(0)),
    Reads("npx bunx uvx", "", "cp --call --package --from --with --python", Rest::Command(0)),
    Reads("sort", "koSTt --key --output --buffer-size --field-separator", "--compress-program", Rest::Data),
    Reads("rg", "ABCEefgjMmrtT --glob --regexp --file --type", "--pre --hostname-bin", Rest::Data),
    Reads("nice", "n --adjustment", "", Rest::Command(0)),
    Reads("ionice", "cnpPu --class --classdata", "", Rest::Command(0)),
    Reads("stdbuf", "ieo --input --error --output", "", Rest::Command(0)),
    Reads("time", "fo --format --output", "", Rest::Command(0)),
    Reads("xargs", "adEILnPs --arg-file --delimiter --max-args --max-chars --max-procs", "", Rest::Command(0)),
    Reads("timeout", "ks --kill-after --signal", "", Rest::Command(1)),
    Reads("chroot", "", "", Rest::Command(1)),
    Reads("taskset", "", "", Rest::Command(1)),
    Reads("chrt", "DPT --sched-runtime --sched-deadline --sched-period", "", Rest::Command(1)),
    Reads("flock", "Ew --timeout --wait --conflict-exit-code", "c --command", Rest::Command(1)),
    Reads("watch", "nq --interval --equexit", "", Rest::Line(0)),
    Reads("script", "BEImoOT", "c --command", Rest::Line(1)),
    Reads("su runuser", "gGsuw --user --group --shell", "c --command --session-command", Rest::Data),
    Reads("ssh", "BbcDEeIiJLlmOPpQRSWw", "oF", Rest::Line(1)),
    Reads("scp sftp", "BbciJlPRsX", "DFoS", Rest::Data),
    Reads("rsync", "BfMT --filter", "e --rsh --rsync-path", Rest::Data),
    Reads("parallel", "aCdEIjLlnNPSs --arg-file --delay --jobs --joblog --retries --timeout", "", Rest::Lines),
    Reads("find fd fdfind", "", "", Rest::ForEach),
    Reads("awk mawk nawk original-awk", "FvW --assign", "efEil --file --exec --source --load", Rest::Code(&[])),
    Reads("gawk", "Fv --assign", "efEil --file --exec --source --include --load", Rest::Code(&["--sandbox", "-S"])),
    Reads("sed", "l --line-length", "ef --expression --file", Rest::Code(&["--sandbox"])),
    Reads("git", "C --git-dir --work-tree --namespace", "c --config-env --exec-path", Rest::Subcommand),
    Reads("tar", "bCfgHKLNTVX --file --directory", TAR, Rest::Data),
    Reads(
        "vi vim nvim view ex gvim vimdiff rvim rview evim eview",
        "iprTtwW",
        "cSul --cmd --remote-expr --remote-send",
        Rest::Plus,
    ),
    Reads("emacs", "", "fl --eval --execute --funcall --load --script", Rest::Data),
    Reads("gdb", "", "x --command --eval-command", Rest::Data),
    Reads("make gmake", "CIoW --directory", "fE --eval --file --makefile", Rest::Data),
    Reads("julia", "Jptm", "eELP --eval --load --print", Rest::Subcommand),
    Reads("Rscript", "", "e", Rest::Subcommand),
    Reads("osascript", "ls", "e", Rest::Subcommand),
    Reads("elixir", "", "er --eval", Rest::Subcommand),
    Reads("groovy", "D", "e", Rest::Subcommand),
    Reads("guile", "LCx", "cl", Rest::Subcommand),
];
const TAR: &str =
    "FI --to-command --checkpoint-action --use-compress-program --rsh-command --info-script --new-volume-script";
/// Subcommands of `git`, and words of theirs: of what is a flag the value is code, only where it is attached if the flag ends
/// in `=`, and behind another word all is.
const OF_GIT: [(&str, &str); 9] = [
    ("grep", "-O= --open-files-in-pager="),
    ("rebase", "-x --exec"),
    ("fetch pull ls-remote fetch-pack", "--upload-pack"),
    ("clone", "-u --upload-pack"),
    ("push send-pack archive", "--receive-pack --exec"),
    ("difftool", "-x --extcmd"),
    ("filter-branch", "--setup --env-filter --tree-filter --index-filter --parent-filter --msg-filter --commit-filter"),
    ("bisect", "run"),
    ("submodule", "foreach"),
];
/// Words of `find` and `fd` behind which a command stands.
const FOR_EACH: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
/// Programs whose options set something by its name, as `git -c` and `ssh -o` do, and names of what can start nothing: in
/// small letters, since those programs take either.
const BY_NAME: [&str; 3] = ["git", "ssh", "scp sftp"];
const SETTINGS: [&str; 6] = ["user.", "safe.directory=", "connecttimeout=", "hostname=", "port=", "user="];

/// All that a program does with its words beyond data, as far as it is known here.
pub(super) fn uses(program: &str, parts: &[Part]) -> Vec<Use> {
    let Some(reads) = Reads::of(program) else { return Vec::new() };
    let mut found = Found::default();
    match reads.3 {
        Rest::ForEach => return commands_for_each(parts),
        // A word of colons ends it.
        Rest::Lines => {
            let own = parts.iter().position(|part| part.text.starts_with(":::")).unwrap_or(parts.len());
            found.read(reads, &parts[..own]);
            let of_words = found.others.is_empty() && parts[own..].iter().any(|part| part.has_place);
            found.uses.extend(of_words.then_some(Use::Line));
        }
        _ => found.read(reads, parts),
    }
    found.rest(program, reads.3);
    found.uses
}

/// The commands behind words for that.
fn commands_for_each(parts: &[Part]) -> Vec<Use> {
    let is_end = |part: &&Part| !part.has_place && matches!(part.text.as_str(), ";" | "\\;" | "+");
    let behind = parts.iter().enumerate().filter(|(_, part)| !part.has_place && FOR_EACH.contains(&part.text.as_str()));
    let command = |at: usize| parts[at + 1..].iter().take_while(|part| !is_end(part)).cloned().collect();
    behind.map(|(at, _)| Use::Command(command(at))).collect()
}

/// What is found while words are read.
#[derive(Default)]
struct Found {
    uses: Vec<Use>,
    /// Words that are neither options nor their values.
    others: Vec<Part>,
    /// Whether an option has the code.
    has_code: bool,
    /// Options, those of one letter each by itself.
    options: Vec<String>,
}

impl Found {
    fn read(&mut self, reads: &Reads, parts: &[Part]) {
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            at += 1;
            match part.text.as_str() {
                _ if self.is_over(reads.3) => self.others.push(part.clone()),
                "--" if !part.has_place => {
                    self.others.extend_from_slice(&parts[at..]);
                    return;
                }
                "-" if reads.3 == Rest::Assigned => {}
                text if !part.is_open && text.starts_with('-') && text.len() > 1 => {
                    if let Some(rest) = self.option(reads, part, &parts[at..]) {
                        at += rest;
                    } else {
                        return;
                    }
                }
                _ => self.others.push(part.clone()),
            }
        }
    }

    /// Whether what follows is no option any more.
    fn is_over(&self, rest: Rest) -> bool {
        match rest {
            Rest::Subcommand | Rest::Lines => !self.others.is_empty(),
            Rest::Command(before) | Rest::Line(before) => self.others.len() > before,
            Rest::Assigned => self.others.iter().any(|part| !part.text.contains('=')),
            Rest::Data | Rest::Code(_) | Rest::ForEach | Rest::Plus => false,
        }
    }

    /// Reads an option: how many words its value is, or nothing where that is all the words that there are.
    fn option(&mut self, reads: &Reads, part: &Part, behind: &[Part]) -> Option<usize> {
        let (is_code, value) = reads.value(part);
        match part.text.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => {
                let behind = if let Value::Attached(text) = &value { text.len() } else { 0 };
                let flags = letters.get(..letters.len() - behind).unwrap_or_default();
                self.options.extend(flags.chars().map(|flag| format!("-{flag}")));
            }
            _ => self.options.push(part.text.clone()),
        }
        let (own, follows) = match value {
            Value::None => return Some(0),
            Value::Attached(text) => (Part { text, ..part.clone() }, 0),
            Value::Next => (behind.first()?.clone(), 1),
        };
        self.has_code |= is_code;
        let is_known = || SETTINGS.iter().any(|start| own.text.to_ascii_lowercase().starts_with(start));
        let is_setting = || BY_NAME.contains(&reads.0) && is_known() && !own.is_open;
        if is_code && own.has_place && !is_setting() {
            self.uses.push(Use::Code(part.text.clone()));
        } else if is_code && reads.3 == Rest::Assigned {
            let words = own.text.split_whitespace().map(|word| Part { text: word.to_owned(), ..own.clone() });
            let words = words.chain(behind[follows..].iter().cloned()).collect::<Vec<_>>();
            self.read(reads, &words);
            return None;
        }
        Some(follows)
    }

    /// What the words mean that are left.
    fn rest(&mut self, program: &str, rest: Rest) {
        let has_place = |parts: &[Part]| parts.iter().any(|part| part.has_place);
        let others = std::mem::take(&mut self.others);
        let has = |option: &str| self.options.iter().any(|one| one == option);
        let behind = |before: usize| others.get(before..).unwrap_or_default();
        let found = match rest {
            Rest::Code(safe) if safe.iter().any(|option| has(option)) => {
                self.uses.clear();
                None
            }
            Rest::Code(safe) if !self.has_code && others.first().is_some_and(|part| part.has_place) => {
                let code = || Use::Code(program.to_owned());
                Some(safe.first().map_or_else(code, |option| Use::Unless(option)))
            }
            // Of `watch`, which then hands nothing to a shell.
            Rest::Line(0) if has("-x") || has("--exec") => Some(Use::Command(others)),
            Rest::Line(before) => has_place(behind(before)).then_some(Use::Line),
            Rest::Lines => has_place(&others).then_some(Use::Line),
            Rest::Command(before) => Some(Use::Command(behind(before).to_vec())),
            Rest::Assigned => {
                Some(Use::Command(others.into_iter().skip_while(|part| part.text.contains('=')).collect()))
            }
            Rest::Plus => others
                .iter()
                .find(|part| part.has_place && part.text.starts_with('+'))
                .map(|part| Use::Code(part.text.clone())),
            Rest::Subcommand if Reads::of(program).is_some_and(|reads| reads.0 == "git") => of_git(&others),
            Rest::Data | Rest::Subcommand | Rest::Code(_) | Rest::ForEach => None,
        };
        self.uses.extend(found);
    }
}

/// What `git` does with the words of a subcommand beyond data.
fn of_git(words: &[Part]) -> Option<Use> {
    let (sub, words) = words.split_first()?;
    let (_, known) = OF_GIT.iter().find(|(subs, _)| subs.split(' ').any(|one| one == sub.text))?;
    known.split(' ').find_map(|known| {
        let word = known.trim_end_matches('=');
        let is_callers = |at: usize| {
            let (own, behind) = (&words[at], &words[at + 1..]);
            match (own.has_place, own.text == word) {
                (true, _) => begins(&own.text, word),
                (false, true) if !word.starts_with('-') => behind.iter().any(|part| part.has_place),
                (false, true) => !known.ends_with('=') && behind.first().is_some_and(|next| next.has_place),
                (false, false) => false,
            }
        };
        (0..words.len()).any(is_callers).then(|| Use::Code(word.to_owned()))
    })
}

/// Whether a word is this flag with a value attached: of a short one, among others in front of it too.
fn begins(text: &str, flag: &str) -> bool {
    match flag.strip_prefix('-').filter(|letter| letter.len() == 1) {
        Some(letter) => text.starts_with('-') && !text.starts_with("--") && text.contains(letter),
        None => text.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')),
    }
}

/// Where the value of an option is.
enum Value {
    None,
    Attached(String),
    Next,
}

impl Reads {
    /// Those of a program, by its name with a version or without. Another one's name may begin like that: `script.sh`.
    fn of(program: &str) -> Option<&'static Self> {
        let name = Path::new(program).file_name()?.to_str()?;
        // Debian has vim.basic, vim.tiny and others.
        let name = if name.starts_with("vim.") { "vim" } else { name };
        let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        ALL.iter().find(|reads| reads.0.split(' ').any(|known| known == name || known == plain))
    }

    /// Whether the value of an option is code, and where it is.
    fn value(&self, part: &Part) -> (bool, Value) {
        let text = part.text.as_str();
        if text.starts_with("--") {
            let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
            let is_in = |words: &str| words.split(' ').any(|word| word.starts_with("--") && word == name);
            let value = match value {
                Some(value) => Value::Attached(value.to_owned()),
                None if is_in(self.1) || is_in(self.2) => Value::Next,
                None => Value::None,
            };
            return (is_in(self.2), value);
        }
        let letters = |words: &'static str| words.split(' ').next().filter(|word| !word.starts_with('-'));
        let is_in = |words: &'static str, letter: char| letters(words).is_some_and(|word| word.contains(letter));
        let flags = text.char_indices().skip(1);
        let taking = flags.into_iter().find(|(_, letter)| is_in(self.1, *letter) || is_in(self.2, *letter));
        let Some((at, letter)) = taking else { return (false, Value::None) };
        let value = &text[at + letter.len_utf8()..];
        let is_next = value.is_empty() && !part.has_place;
        (is_in(self.2, letter), if is_next { Value::Next } else { Value::Attached(value.to_owned()) })
    }
}
