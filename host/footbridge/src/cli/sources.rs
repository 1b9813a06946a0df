//! Says which files were taken when none was named, and which were left out.

use std::path::{Path, PathBuf};

use crate::config::{Looked, trust_it};

/// One line for the files that were taken, and one for those that are not trusted; none where files were named.
pub(super) fn said(looked: &Looked) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().ok().filter(|here| here.parent().is_some());
    let short = |path: &Path| shortened(path, home.as_deref(), here.as_deref());
    let mut lines = Vec::new();
    if !looked.taken.is_empty() {
        let taken: Vec<String> = looked.taken.iter().map(|path| short(path)).collect();
        lines.push(format!("footbridge: configuration from {}", taken.join(", ")));
    }
    if !looked.left_out.is_empty() {
        let why = |changed| if changed { "changed since it was trusted" } else { "not trusted" };
        let left_out = looked.left_out.iter().map(|one| format!("{} ({})", short(&one.path), why(one.changed)));
        let left_out: Vec<String> = left_out.collect();
        let files: Vec<String> = looked.left_out.iter().map(|one| short(&one.path)).collect();
        lines.push(format!("footbridge: left out: {}: {}", left_out.join(", "), trust_it(&files.join(" "))));
    }
    lines
}

/// A path as people write it: from the working folder or the home folder on.
fn shortened(path: &Path, home: Option<&Path>, here: Option<&Path>) -> String {
    let below = |folder: Option<&Path>, start: &str| {
        let rest = path.strip_prefix(folder?).ok()?;
        Some(format!("{start}/{}", rest.display()))
    };
    below(here, ".").or_else(|| below(home, "~")).unwrap_or_else(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::LeftOut;

    #[test]
    fn each_file_is_said_once_with_what_became_of_it() {
        assert_eq!(said(&Looked::default()), [] as [String; 0]);
        let left_out = |path: &str, changed| LeftOut { path: path.into(), changed };
        let looked = Looked {
            tried: Vec::new(),
            taken: vec!["/q/servers.json".into()],
            left_out: vec![left_out("/w/.mcp.json", false), left_out("/w/mcp.json", true)],
        };
        let lines = said(&looked);
        assert_eq!(lines[0], "footbridge: configuration from /q/servers.json");
        assert!(lines[1].contains("/w/.mcp.json (not trusted), /w/mcp.json (changed since it was trusted): look at"));
        let (home, here) = (Some(Path::new("/h")), Some(Path::new("/h/w")));
        assert_eq!(shortened(Path::new("/h/w/.mcp.json"), home, here), "./.mcp.json");
        assert_eq!(shortened(Path::new("/h/.mcp.json"), home, here), "~/.mcp.json");
    }
}
