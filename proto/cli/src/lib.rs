//! What the commands share that call tools for a person or a script: `tool-cli` inside a sandbox, `footbridge tools`,
//! `footbridge call` and `mcp-tool` outside.
//!
//! - [`typed`]: arguments and times as they are typed.
//! - [`answers`]: the shapes of answers, read leniently.
//! - [`schema`], [`gathered`], [`signature`], [`help`]: what a tool takes; a tool as one line, and how to call it.
//! - [`flags`], [`arguments`]: a tool's arguments as flags, and with JSON put together; [`suggest`] says what was meant;
//!   [`shell_word`]: words as they are typed in a shell.
//! - [`render`], [`layout`], [`laid_out`], [`show`]: results, JSON and listings as text; [`pick`] takes a part of JSON.
//! - [`completion`]: what a shell reads to complete a command; [`man`]: help as a page for `man`; [`findings`]: what a look at one hop after the other found.
//! - [`output`], [`destination`]: standard output, standard error, a file, or a folder for several; [`blocking`]: streams
//!   that wait whatever they are told; [`drawn_line`]: a line that is drawn again and again.
//! - [`result`]: a result on its way to one of these; [`report`]: one object that says what became of a call.
//!
//! It knows no bridge, no MCP and no async; what it shows was written by servers, and is escaped for a terminal.

pub mod answers;
pub mod arguments;
pub mod blocking;
pub mod completion;
mod decimal;
pub mod destination;
pub mod drawn_line;
pub mod findings;
pub mod flags;
pub mod gathered;
pub mod help;
mod laid_out;
pub mod layout;
pub mod man;
pub mod output;
pub mod pick;
pub mod render;
pub mod report;
pub mod result;
pub mod schema;
pub mod shell_word;
pub mod show;
pub mod signature;
pub mod suggest;
pub mod typed;
