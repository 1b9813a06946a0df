//! An operator: a person, or a program of theirs, who answers approvals, accepts pins, ends sessions and calls tools. Not
//! a guest, which has a session and its token.
//!
//! Who it is comes from whoever let them in. A login of a console will be one more kind.

use std::fmt;

/// An operator, by how they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// A process at the control socket, as the kernel says.
    UnixPeer {
        /// Its user.
        uid: u32,
        /// Its process.
        pid: i32,
    },
    /// Whoever runs this process: at its terminal, or the program that it is part of.
    ThisProcess {
        /// Its user.
        uid: u32,
    },
}

impl Operator {
    /// What the record says of who did something, and by what.
    #[must_use]
    pub fn by(&self, means: &str) -> String {
        format!("{means} ({self})")
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnixPeer { uid, pid } => write!(f, "uid {uid}, pid {pid}"),
            Self::ThisProcess { uid } => write!(f, "uid {uid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_record_says_who_and_by_what() {
        let peer = Operator::UnixPeer { uid: 7, pid: 9 };
        assert_eq!(peer.by("approvals allow"), "approvals allow (uid 7, pid 9)");
        assert_eq!(Operator::ThisProcess { uid: 7 }.by("terminal of run"), "terminal of run (uid 7)");
    }
}
