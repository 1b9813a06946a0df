//! A result on its way out: to standard output as text or JSON, or written where it was asked to be.

use std::{fmt, fs::create_dir, io, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use crate::{
    answers::{CallResult, DecodeError},
    destination::Prepared,
    layout,
    output::{self, AFTER, FileContent, NotWritten, OutFile, Spilled},
    pick::NotPicked,
    render::{Format, Media, Rendered, Shape, is_media},
    suggest::sentence,
};

/// Why a result did not get out.
#[derive(Debug, thiserror::Error)]
pub enum NotPrinted {
    /// It cannot be written.
    #[error(transparent)]
    Written(#[from] NotWritten),
    /// Its data cannot be read. All of it has been printed.
    #[error(
        "the result's data is not base64, so all of it was printed and nothing was written. The call was made: {0}"
    )]
    Base64(#[from] DecodeError),
    /// It has no such part. All of it has been printed.
    #[error("{} The call was made, and all of its result was printed", sentence(&.0.to_string()))]
    Picked(#[from] NotPicked),
}

/// Prints the result of a call, and says whether the tool did what it was called for. What it reports as an error goes
/// to standard error, so that standard output stays clean for a pipe.
///
/// # Errors
/// [`NotPrinted`].
pub fn print_call(
    raw: &RawValue,
    result: CallResult,
    shape: &Shape,
    to: Option<impl Into<Prepared>>,
) -> Result<bool, NotPrinted> {
    if !result.is_error {
        return print(raw, Rendered::call(result), shape, to).map(|()| true);
    }
    if shape.format == Format::Json {
        output::print_error(&(layout::one_line(raw) + "\n"));
        return Ok(false);
    }
    let words = words_beside(&result, shape.format);
    let mut rendered = Rendered::call(result);
    // Of an error nothing is picked, and nothing is cut.
    let _ = rendered.set_shape(&Shape { pick: None, ..shape.clone() }, false);
    if rendered.is_empty() {
        output::print_error("Error: the tool reported an error without a word\n");
    } else {
        output::print_error_with(|out| {
            words.iter().try_for_each(|words| writeln!(out, "{words}"))?;
            output::with_line_end(out, |out| rendered.write(false, out))
        });
        tell_unprinted(&rendered);
    }
    Ok(false)
}

/// The text of an error where its structured part is what is printed: what went wrong is mostly said in words alone.
/// None where they are a copy of that part.
fn words_beside(result: &CallResult, format: Format) -> Option<String> {
    let structured = result.structured_content.as_ref().filter(|_| !matches!(format, Format::Text | Format::Raw))?;
    let words = Some(result.text()).filter(|words| !words.trim().is_empty())?;
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    let is_copy = value(&words).is_some_and(|said| Some(said) == value(structured.get()));
    (!is_copy).then_some(words)
}

/// Says which images, sounds and blobs were not printed beside a structured result.
fn tell_unprinted(result: &Rendered) {
    for media in result.unprinted() {
        output::print_error(&format!(
            "Not printed, beside the structured result: {media}; next time write it to a file, with --out FILE or --out-dir \
             DIR\n"
        ));
    }
}

/// Prints a result, or writes it and prints the rest.
///
/// # Errors
/// [`NotPrinted`].
pub fn print(
    raw: &RawValue,
    mut result: Rendered,
    shape: &Shape,
    to: Option<impl Into<Prepared>>,
) -> Result<(), NotPrinted> {
    let on_terminal = to.is_none() && output::on_terminal();
    if let Err(why) = result.set_shape(shape, on_terminal) {
        print_whole(raw, &result, &Shape { pick: None, ..shape.clone() })?;
        return Err(why.into());
    }
    let (result, json) = (&result, shape.format == Format::Json);
    let media = result.media();
    match (to.map(Into::into), media.as_slice()) {
        (None, [_]) if result.is_bare() && !result.has_rest() && !output::on_terminal() => {
            let bytes = decoded(raw, result, shape)?.concat();
            Ok(output::print_bytes(&bytes).map_err(NotWritten::of_result)?)
        }
        (None, _) => {
            print_whole(raw, result, shape)?;
            if !shape.is_all_json() {
                tell_unprinted(result);
            }
            Ok(())
        }
        (Some(Prepared::File(file)), [_]) => {
            let path = file.path().display().to_string();
            let bytes = file.write(&FileContent::Bytes(decoded(raw, result, shape)?.concat()))?;
            print_rest(json, result)?;
            told(json, &OneWritten { written: &path, bytes, rest: Rest::of(raw) }, &[&path])
        }
        (Some(Prepared::File(file)), none_or_several) => write_text(raw, result, file, none_or_several.len(), json),
        (Some(Prepared::Folder(folder)), media) => {
            let written = write_all(&folder, media, decoded(raw, result, shape)?)?;
            print_rest(json, result)?;
            let paths: Vec<&str> = written.iter().map(|one| one.path.as_str()).collect();
            told(json, &AllWritten { written: &written, rest: Rest::of(raw) }, &paths)
        }
    }
}

/// Writes a result with no image, sound or blob, or with several: what a pipe gets, as the public command has it, or else the
/// whole result.
fn write_text(raw: &RawValue, result: &Rendered, file: OutFile, media: usize, json: bool) -> Result<(), NotPrinted> {
    let path = file.path().display().to_string();
    let is_whole = media == 0 || result.has_all_data();
    let text = |out: &mut dyn fmt::Write| {
        if is_whole { result.write(false, out) } else { out.write_str(&layout::one_line(raw)) }
    };
    let bytes = file.write(&FileContent::Text(&text))?;
    told(json, &OneWritten { written: &path, bytes, rest: Rest::default() }, &[&path])?;
    if media > 1 {
        let how = if is_whole { "" } else { ", and the file has all of it as one line of JSON" };
        output::print_error(&format!(
            "The result has {media} images, sounds or blobs{how}; --out-dir DIR writes each to a file of its own\n"
        ));
    }
    Ok(())
}

fn print_whole(raw: &RawValue, result: &Rendered, shape: &Shape) -> Result<(), NotPrinted> {
    let on_terminal = output::on_terminal();
    let write = |out: &mut dyn fmt::Write| {
        if shape.is_all_json() {
            return out.write_str(&layout::one_line(raw)).and_then(|()| out.write_str("\n"));
        }
        if result.is_empty() {
            return Ok(());
        }
        if result.is_bare() {
            return result.write(on_terminal, out);
        }
        output::with_line_end(out, |out| result.write(on_terminal, out))
    };
    let Some(most) = shape.max_bytes else { return Ok(output::print_with(write).map_err(NotWritten::of_result)?) };
    if let Some(Spilled { kept, bytes, lines }) = output::print_within(most, write).map_err(NotWritten::of_result)? {
        let rest = match kept {
            Ok(path) if lines == 1 => format!("the whole line is in {}", path.display()),
            Ok(path) => format!("all {lines} lines are in {}", path.display()),
            Err(why) => format!(
                "the rest could not be kept in {}, and is lost: {why}. Next time set TMPDIR to a folder that can be written",
                std::env::temp_dir().display()
            ),
        };
        output::print_error(&format!("The first {most} of {bytes} bytes were printed; {rest}\n"));
    }
    Ok(())
}

/// For a program it is in the report.
fn print_rest(json: bool, result: &Rendered) -> Result<(), NotPrinted> {
    if json || !result.has_rest() {
        return Ok(());
    }
    let on_terminal = output::on_terminal();
    let write = |out: &mut dyn fmt::Write| output::with_line_end(out, |out| result.write_rest(on_terminal, out));
    Ok(output::print_with(write).map_err(NotWritten::of_result)?)
}

/// The bytes of all images, sounds and blobs. Where some are none, all of the result is printed: it was made.
fn decoded(raw: &RawValue, result: &Rendered, shape: &Shape) -> Result<Vec<Vec<u8>>, NotPrinted> {
    let decoded: Result<Vec<_>, DecodeError> = result.media().iter().map(|one| one.bytes()).collect();
    if decoded.is_err() {
        print_whole(raw, result, shape)?;
    }
    Ok(decoded?)
}

fn write_all(folder: &Path, media: &[&Media], decoded: Vec<Vec<u8>>) -> Result<Vec<Written>, NotPrinted> {
    match create_dir(folder) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(NotWritten::File { path: folder.to_owned(), source, then: AFTER }.into());
        }
        _ => {}
    }
    let files = media.iter().zip(decoded).enumerate();
    let write = files.map(|(at, (one, bytes))| {
        let path = folder.join(one.file_name(at + 1));
        let shown = path.display().to_string();
        let bytes = OutFile::of_a_result(&path)?.write(&FileContent::Bytes(bytes))?;
        Ok(Written { path: shown, bytes, mime_type: one.mime_type().map(str::to_owned) })
    });
    write.collect()
}

/// Says what was written, at the end of what is printed.
fn told(json: bool, report: &impl Serialize, paths: &[&str]) -> Result<(), NotPrinted> {
    if json {
        let report = to_raw_value(report).map_err(|e| NotWritten::Stdout(e.into()))?;
        return Ok(output::print(&(layout::one_line(&report) + "\n"))?);
    }
    let lines: String = paths.iter().map(|path| format!("Written to: {path}\n")).collect();
    Ok(output::print(&lines)?)
}

/// One file that was written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    path: String,
    bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
}

#[derive(Serialize)]
struct OneWritten<'r> {
    written: &'r str,
    bytes: u64,
    #[serde(flatten)]
    rest: Rest<'r>,
}

#[derive(Serialize)]
struct AllWritten<'r> {
    written: &'r [Written],
    #[serde(flatten)]
    rest: Rest<'r>,
}

/// What of a result is in no file.
#[derive(Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Rest<'r> {
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    content: Vec<&'r RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    contents: Vec<&'r RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    structured_content: Option<&'r RawValue>,
}

impl<'r> Rest<'r> {
    fn of(raw: &'r RawValue) -> Self {
        // Its shape was checked when the result was read.
        let mut rest: Self = serde_json::from_str(raw.get()).unwrap_or_default();
        rest.content.retain(|block| !is_media(block, false));
        rest.contents.retain(|part| !is_media(part, true));
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_in_its_own_words_beside_its_structured_part() {
        let beside = |content: &str, format: Format| {
            let text = serde_json::to_string(content).unwrap();
            let result = format!(
                r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true,"structuredContent":{{"code":7}}}}"#
            );
            words_beside(&serde_json::from_str(&result).unwrap(), format)
        };
        for format in [Format::Recorded, Format::Yaml, Format::Table] {
            assert_eq!(beside("wait 60 s", format).as_deref(), Some("wait 60 s"), "{format:?}");
        }
        assert_eq!(beside("wait 60 s", Format::Text), None, "it is printed itself");
        assert_eq!(beside("{ \"code\": 7 }", Format::Recorded), None, "a copy says nothing new");
        assert_eq!(beside(" ", Format::Recorded), None);
    }

    #[test]
    fn an_image_beside_a_structured_result_is_what_is_not_printed() {
        let image = r#"{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}"#;
        let told = |result: &str, format: Format| {
            let mut rendered = Rendered::call(serde_json::from_str(result).unwrap());
            rendered.set_shape(&Shape { format, ..Shape::default() }, false).unwrap();
            rendered.unprinted().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let beside = format!(r#"{{"content":[{image}],"structuredContent":{{"a":1}}}}"#);
        assert_eq!(told(&beside, Format::Recorded), ["image image/png, 8 bytes"]);
        assert!(told(&beside, Format::Text).is_empty(), "it is a line of what is printed");
        assert!(told(&format!(r#"{{"content":[{image}]}}"#), Format::Recorded).is_empty());
    }
}
