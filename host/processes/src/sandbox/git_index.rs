//! An index of git as somebody may have forged it: whether it names what git itself never puts there, and whether it is
//! read by git as it is read here. The format is that of gitformat-index(5), versions 2 to 4.
//!
//! Git trusts this file: it checks neither its paths nor, mostly, its sum. One that says of itself where it is to be read
//! from (for several threads), and not where it is read here, is no honest one either. It is read once, in pieces, and no
//! more of it is held than one path.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::time::Instant;

use super::git_names::is_gits;

/// What is read at once.
const PIECE: usize = 256 << 10;
/// Bytes of a path: the kernel opens no longer one.
pub(super) const MAX_PATH: usize = 4_096;
/// Parts that several threads read, and extensions. Git makes one part a processor, and has ten extensions.
const MAX_PARTS: usize = 4_096;
const MAX_EXTENSIONS: usize = 64;
/// Entries between two looks at the clock.
const ENTRIES_A_LOOK: u32 = 4_096;

/// The header: a mark, a version and a number of entries.
const HEADER: u64 = 12;
/// The numbers of an entry before its object, and where among them its mode is.
const NUMBERS: usize = 40;
const MODE: usize = 24;
/// Of an entry's flags: that there are more of them, and the length of its path, where it is shorter than that.
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0x0fff;

/// How long the names of objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectFormat {
    Sha1,
    Sha256,
}

impl ObjectFormat {
    pub(super) fn bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }
}

/// Why an index is not one to let git read.
#[derive(Debug, thiserror::Error)]
pub(super) enum IndexFault {
    #[error("it names {0}, which git itself never puts there, and git would write, delete or read that file")]
    Path(String),
    #[error("it is not as git writes it: {0}")]
    Malformed(&'static str),
    #[error("it is of version {0}, which is not known here")]
    Version(u32),
    #[error("it is too large to be looked through in time")]
    Late,
    #[error("its repository's settings are too long to be read")]
    Settings,
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl IndexFault {
    /// Whether git may read it all the same, to do what it says.
    pub(super) fn is_forged(&self) -> bool {
        matches!(self, Self::Path(_) | Self::Malformed(_))
    }
}

type Checked<T> = Result<T, IndexFault>;

fn malformed<T>(what: &'static str) -> Checked<T> {
    Err(IndexFault::Malformed(what))
}

/// Looks through an index, and gives the object's name of another one that it goes on, if it does.
pub(super) fn check_index(file: &File, format: ObjectFormat, until: Instant) -> Checked<Option<String>> {
    let size = file.metadata()?.len();
    let Some(end) = size.checked_sub(format.bytes() as u64).filter(|end| *end >= HEADER) else {
        return malformed("it is too short");
    };
    let whole = Whole { file, end, format };
    let mut entries = Entries::begin(&whole)?;
    let begins_at = whole.entries_end()?;
    let parts = begins_at.map_or(Ok(Vec::new()), |begins_at| whole.parts(begins_at))?;
    let mut parts = parts.into_iter().peekable();
    let mut left = 0;
    for number in 0..entries.count {
        if number % ENTRIES_A_LOOK == 0 && Instant::now() > until {
            return Err(IndexFault::Late);
        }
        if left == 0
            && let Some(part) = parts.next()
        {
            if u64::from(part.offset) != entries.at || part.count == 0 {
                return malformed("its parts begin elsewhere than they say");
            }
            left = part.count;
            entries.is_first = true;
        }
        left = left.saturating_sub(1);
        entries.next()?;
    }
    if left > 0 || parts.next().is_some() {
        return malformed("its parts hold more than it has");
    }
    if entries.at > end || begins_at.is_some_and(|begins_at| begins_at != entries.at) {
        return malformed("its entries end elsewhere than they say");
    }
    let link = whole.link(entries.at)?;
    if entries.has_nameless && link.is_none() {
        return malformed("an entry has no path");
    }
    Ok(link)
}

/// A part that a thread of its own reads.
struct Part {
    offset: u32,
    count: u32,
}

/// The file, up to its sum.
struct Whole<'a> {
    file: &'a File,
    end: u64,
    format: ObjectFormat,
}

impl Whole<'_> {
    fn number_at(&self, at: u64) -> Checked<u32> {
        let mut number = [0; 4];
        self.file.read_exact_at(&mut number, at)?;
        Ok(u32::from_be_bytes(number))
    }

    /// Where it says that its entries end, if it does: at the very end.
    fn entries_end(&self) -> Checked<Option<u64>> {
        let length = 4 + self.format.bytes();
        let Some(at) = self.end.checked_sub(8 + length as u64).filter(|at| *at >= HEADER) else { return Ok(None) };
        let mut mark = [0; 4];
        self.file.read_exact_at(&mut mark, at)?;
        let is_one = &mark == b"EOIE" && self.number_at(at + 4)? as usize == length;
        if is_one { Ok(Some(u64::from(self.number_at(at + 8)?))) } else { Ok(None) }
    }

    /// The extension of this name from there on: where its bytes begin, and how many they are. Git writes none twice, and of
    /// two takes the first or the last.
    fn find(&self, mut at: u64, name: &[u8; 4]) -> Checked<Option<(u64, u32)>> {
        let mut found = None;
        for _ in 0..MAX_EXTENSIONS {
            if at + 8 > self.end {
                return Ok(found);
            }
            let mut mark = [0; 4];
            self.file.read_exact_at(&mut mark, at)?;
            let size = self.number_at(at + 4)?;
            if &mark == name && found.replace((at + 8, size)).is_some() {
                return malformed("it says twice what it says once");
            }
            at += 8 + u64::from(size);
        }
        malformed("it has too many extensions")
    }

    /// The name of the index that it goes on. Where it has none, that is zeros.
    fn link(&self, at: u64) -> Checked<Option<String>> {
        let Some((at, size)) = self.find(at, b"link")? else { return Ok(None) };
        let mut name = vec![0; self.format.bytes()];
        if (size as usize) < name.len() || at + u64::from(size) > self.end {
            return malformed("it goes on another one that it does not name");
        }
        self.file.read_exact_at(&mut name, at)?;
        Ok(Some(name.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The parts of its entries, if it says any.
    fn parts(&self, at: u64) -> Checked<Vec<Part>> {
        let Some((at, size)) = self.find(at, b"IEOT")? else { return Ok(Vec::new()) };
        let count = (size as usize).saturating_sub(4) / 8;
        if count > MAX_PARTS || at + u64::from(size) > self.end {
            return malformed("it has too many parts");
        }
        let each = (0..count as u64).map(|number| at + 4 + 8 * number);
        each.map(|at| Ok(Part { offset: self.number_at(at)?, count: self.number_at(at + 4)? })).collect()
    }
}

/// Its entries, one after the other.
struct Entries<'a> {
    input: BufReader<&'a File>,
    at: u64,
    count: u32,
    is_compressed: bool,
    object: usize,
    /// That of the entry before.
    path: Vec<u8>,
    /// Whether the next is the first of its part: its path has nothing of the one before.
    is_first: bool,
    has_nameless: bool,
}

impl<'a> Entries<'a> {
    fn begin(whole: &Whole<'a>) -> Checked<Self> {
        let (mut header, mut input) = ([0; HEADER as usize], BufReader::with_capacity(PIECE, whole.file));
        input.read_exact(&mut header)?;
        let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if &header[..4] != b"DIRC" {
            return malformed("it does not begin as one");
        }
        let version = number(4);
        if !(2..=4).contains(&version) {
            return Err(IndexFault::Version(version));
        }
        Ok(Self {
            input,
            at: HEADER,
            count: number(8),
            is_compressed: version == 4,
            object: whole.format.bytes(),
            path: Vec::new(),
            is_first: true,
            has_nameless: false,
        })
    }

    fn read(&mut self, into: &mut [u8]) -> Checked<()> {
        self.at += into.len() as u64;
        match self.input.read_exact(into) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => malformed("it ends too early"),
            other => Ok(other?),
        }
    }

    fn next(&mut self) -> Checked<()> {
        let mut fixed = [0; NUMBERS + 32 + 2];
        let fixed = &mut fixed[..NUMBERS + self.object + 2];
        self.read(fixed)?;
        let flags = u16::from_be_bytes([fixed[NUMBERS + self.object], fixed[NUMBERS + self.object + 1]]);
        let is_folder = u32::from_be_bytes([fixed[MODE], fixed[MODE + 1], fixed[MODE + 2], fixed[MODE + 3]])
            & 0o170_000
            == 0o040_000;
        let mut before = fixed.len();
        if flags & EXTENDED != 0 {
            self.read(&mut [0; 2])?;
            before += 2;
        }
        let kept = if self.is_compressed { self.kept()? } else { 0 };
        self.path.truncate(kept);
        self.is_first = false;
        match usize::from(flags & LENGTH) {
            length if length < usize::from(LENGTH) => self.path_of(length)?,
            _ => self.long_path()?,
        }
        if !self.is_compressed {
            // Zeros up to the next eighth byte; one was read.
            let filled = (before + self.path.len() + 8) & !7;
            let mut zeros = [0; 8];
            let zeros = &mut zeros[..filled - before - self.path.len() - 1];
            self.read(zeros)?;
            if zeros.iter().any(|byte| *byte != 0) {
                return malformed("there is more behind a path");
            }
        }
        self.look_at_path(kept, is_folder)
    }

    /// How much of the path before is in this one.
    fn kept(&mut self) -> Checked<usize> {
        let (mut byte, mut left_out) = ([0], 0_usize);
        loop {
            self.read(&mut byte)?;
            left_out = (left_out << 7) + usize::from(byte[0] & 0x7f);
            if left_out > 2 * MAX_PATH {
                return malformed("a path leaves out more than there was");
            }
            if byte[0] & 0x80 == 0 {
                break;
            }
            left_out += 1;
        }
        match self.path.len().checked_sub(left_out) {
            // Who reads only this part knows no path before.
            Some(kept) if kept == 0 || !self.is_first => Ok(kept),
            _ => malformed("a path goes on with another than the one before"),
        }
    }

    /// The rest of a path that has this length, and the zero behind it.
    fn path_of(&mut self, length: usize) -> Checked<()> {
        let kept = self.path.len();
        if kept > length || length > MAX_PATH {
            return malformed("a path is longer than it says");
        }
        let mut path = std::mem::take(&mut self.path);
        path.resize(length + 1, 0);
        self.read(&mut path[kept..])?;
        let is_ended = path.pop() == Some(0);
        self.path = path;
        if is_ended { Ok(()) } else { malformed("a path does not end where it says") }
    }

    /// The rest of a path that ends with a zero.
    fn long_path(&mut self) -> Checked<()> {
        let room = MAX_PATH + 1 - self.path.len();
        let read = self.input.by_ref().take(room as u64).read_until(0, &mut self.path)?;
        self.at += read as u64;
        if self.path.pop() == Some(0) { Ok(()) } else { malformed("a path is too long") }
    }

    /// Looks at as much of it as is not of the one before, from the last slash on.
    fn look_at_path(&mut self, kept: usize, is_folder: bool) -> Checked<()> {
        let path = match self.path.strip_suffix(b"/") {
            // A folder that is not checked out, in a sparse index: git puts names behind it.
            Some(folder) if is_folder => folder,
            None if is_folder => return malformed("a folder has no slash behind it"),
            _ => &self.path,
        };
        // In an index that is split such an entry goes on another one's.
        if path.is_empty() && !is_folder {
            self.has_nameless = true;
            return Ok(());
        }
        let known = path.iter().take(kept).rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        let is_one = path.get(known..).is_some_and(is_gits);
        if is_one { Ok(()) } else { Err(IndexFault::Path(String::from_utf8_lossy(&self.path).into_owned())) }
    }
}

#[cfg(test)]
mod tests;
