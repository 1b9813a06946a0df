//! The shells that words are completed in, by `complete`, and what each is to read at its start.

/// Their names, and their scripts.
pub(crate) const SHELLS: [(&str, &str); 3] = [
    ("bash", include_str!("shells/completion.bash")),
    ("zsh", include_str!("shells/completion.zsh")),
    ("fish", include_str!("shells/completion.fish")),
];
