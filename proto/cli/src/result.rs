//! A result on its way out: to standard output as text or JSON, or into a file.

use std::fmt;

use serde_json::{json, value::RawValue};

use crate::{
    answers::{CallResult, DecodeError},
    layout,
    output::{self, FileContent, NotWritten, OutFile},
    render::Rendered,
};

/// Why a result did not get out.
#[derive(Debug, thiserror::Error)]
pub enum NotPrinted {
    /// It cannot be written.
    #[error(transparent)]
    Written(#[from] NotWritten),
    /// Its data cannot be read.
    #[error("the result's data is not base64, so nothing was written: {0}")]
    Base64(#[from] DecodeError),
}

/// Prints the result of a call, and says whether the tool did what it was called for. What it reports as an error goes
/// to standard error, so that standard output stays clean for a pipe.
///
/// # Errors
/// [`NotPrinted`].
pub fn print_call(raw: &RawValue, result: CallResult, json: bool, file: Option<OutFile>) -> Result<bool, NotPrinted> {
    if !result.is_error {
        return print(raw, &Rendered::call(result), json, file).map(|()| true);
    }
    if json {
        output::print(&(layout::one_line(raw) + "\n"))?;
        return Ok(false);
    }
    let rendered = Rendered::call(result);
    if rendered.is_empty() {
        output::print_error("Error: the tool reported an error without a word\n");
    } else {
        output::print_error_with(|out| rendered.write(false, out).and_then(|()| out.write_str("\n")));
    }
    Ok(false)
}

/// Prints a result, or writes it to a file and prints that.
///
/// # Errors
/// [`NotPrinted`].
pub fn print(raw: &RawValue, result: &Rendered, json: bool, file: Option<OutFile>) -> Result<(), NotPrinted> {
    let Some(file) = file else {
        if json {
            return Ok(output::print(&(layout::one_line(raw) + "\n"))?);
        }
        if result.is_empty() {
            return Ok(());
        }
        let on_terminal = output::on_terminal();
        return Ok(output::print_with(|out| result.write(on_terminal, out).and_then(|()| out.write_str("\n")))?);
    };
    let path = file.path().display().to_string();
    let text = |out: &mut dyn fmt::Write| result.write(false, out);
    let content = match result.only_data() {
        Some(bytes) => FileContent::Bytes(bytes?),
        None => FileContent::Text(&text),
    };
    let bytes = file.write(&content)?;
    Ok(output::print(&if json {
        format!("{}\n", json!({ "written": path, "bytes": bytes }))
    } else {
        format!("Written to: {path}\n")
    })?)
}
