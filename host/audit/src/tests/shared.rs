//! The chain that several processes write to in turn: it is one chain, whoever is killed, and what is done to it shows.

use std::{fs, path::Path, thread, time::Duration};

use super::chain::record;
use crate::{
    AuditSettings, OutcomeRecord, Recorder, Trail,
    lock_file::LockFile,
    read::{ChainFolder, KnownHeads, ProblemKind, Report, chains, verify},
};
use footbridge_core::limits::AuditLimits;

fn starts(audit: &Path, file_bytes: usize) -> Trail {
    let settings = AuditSettings { file_bytes, ..AuditSettings::default() };
    Trail::start(Recorder::one_shot(audit, &settings).unwrap(), AuditLimits::default()).unwrap()
}

/// The only chain that there is.
fn chain(audit: &Path) -> ChainFolder {
    let mut all = chains(audit).unwrap();
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn verified(audit: &Path) -> Report {
    let report = verify(&chain(audit), &KnownHeads::of(audit, &[], Vec::new())).unwrap();
    assert_eq!((&report.problem, report.torn), (&None, 0), "{report:?}");
    report
}

/// The last file of the chain.
fn last_file(audit: &Path) -> std::path::PathBuf {
    chain(audit).files().unwrap().pop().unwrap().1
}

#[test]
fn those_who_write_at_once_and_one_after_the_other_make_one_chain() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for records in 0..4 {
                    let trail = starts(&audit, 3_000);
                    record(&trail, records);
                    trail.close().unwrap();
                }
            });
        }
    });
    let report = verified(&audit);
    assert!(report.ended && report.files > 3, "{report:?}");
    // Sixteen began and ended, each with a head; and the first lines of further files.
    assert_eq!(report.records, 16 * 3 + 4 * 6 + report.files as u64 - 1, "{report:?}");
    assert_eq!(report.covered, report.records, "{report:?}");
}

#[test]
fn what_one_left_that_was_killed_while_it_wrote_is_cut_off_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let first = starts(&audit, 1 << 20);
    record(&first, 2);
    first.close().unwrap();
    let file = last_file(&audit);
    let whole = fs::read(&file).unwrap();
    fs::write(&file, [whole.as_slice(), &whole[..100]].concat()).unwrap();
    let second = starts(&audit, 1 << 20);
    record(&second, 1);
    // It was killed as well, and ends nothing.
    std::mem::forget(second);
    let report = verified(&audit);
    assert_eq!((report.records, report.ended), (5 + 2, false), "{report:?}");
}

#[test]
fn a_file_that_was_begun_and_left_empty_is_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    starts(&audit, 1 << 20).close().unwrap();
    fs::write(chain(&audit).path.join("000002.jsonl"), "").unwrap();
    starts(&audit, 1 << 20).close().unwrap();
    let report = verified(&audit);
    assert_eq!((report.files, report.records, report.ended), (2, 3 + 4, true), "{report:?}");
}

#[test]
fn what_is_changed_or_put_behind_the_end_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    (0..2).for_each(|_| starts(&audit, 1 << 20).close().unwrap());
    let file = last_file(&audit);
    let lines = fs::read_to_string(&file).unwrap();
    let problem = |text: String| {
        fs::write(&file, text).unwrap();
        verify(&chain(&audit), &KnownHeads::default()).unwrap().problem.unwrap()
    };
    let changed = problem(lines.replacen("\"pid\":", "\"pid\":1", 1));
    assert_eq!((changed.kind, changed.seq), (ProblemKind::Changed, 1), "{changed:?}");
    let last = lines.lines().last().unwrap();
    let prev = footbridge_core::digest::digest_text(footbridge_core::digest::Digest::of(last));
    let behind =
        problem(format!("{lines}{{\"seq\":7,\"prev\":\"{prev}\",\"time\":\"t\",\"mono\":0,\"type\":\"limited\"}}\n"));
    assert_eq!((behind.kind, behind.seq), (ProblemKind::Inserted, 7), "{behind:?}");
    // Of the end there is one head, and a head has to be one.
    let head = |rest: &str| {
        format!("{lines}{{\"seq\":7,\"prev\":\"{prev}\",\"time\":\"t\",\"mono\":0,\"type\":\"head\"{rest}}}\n")
    };
    assert_eq!(problem(head("")).kind, ProblemKind::Inserted);
    let without_head: String = lines.lines().take(5).map(|line| format!("{line}\n")).collect();
    let end = without_head.lines().last().unwrap();
    let digest = footbridge_core::digest::digest_text(footbridge_core::digest::Digest::of(end));
    let forged = problem(format!(
        "{without_head}{{\"seq\":6,\"prev\":\"{digest}\",\"time\":\"t\",\"mono\":0,\"type\":\"head\"}}\n"
    ));
    assert_eq!((forged.kind, forged.seq), (ProblemKind::Forged, 6), "{forged:?}");
}

#[test]
fn a_folder_that_was_moved_or_copied_is_not_gone_on_with() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    starts(&audit, 1 << 20).close().unwrap();
    let first = chain(&audit);
    let moved = audit.join(format!("{}.old", first.name));
    fs::rename(&first.path, &moved).unwrap();
    // A later name of the right kind, with the chain of another in it.
    let copied = audit.join("one-shot-99991231T235959Z-aaaaaaaa");
    fs::create_dir(&copied).unwrap();
    fs::copy(moved.join("000001.jsonl"), copied.join("000001.jsonl")).unwrap();
    let before = fs::read(moved.join("000001.jsonl")).unwrap();
    starts(&audit, 1 << 20).close().unwrap();
    let all = chains(&audit).unwrap();
    assert_eq!(all.len(), 3, "one that is begun: {all:?}");
    for file in [moved, copied] {
        assert_eq!(fs::read(file.join("000001.jsonl")).unwrap(), before, "{}", file.display());
    }
    let begun = all
        .iter()
        .find(|one| one.name != first.name && one.name.starts_with("one-shot-2") && !one.name.ends_with(".old"));
    let report = verify(begun.unwrap(), &KnownHeads::of(&audit, &[], Vec::new())).unwrap();
    assert!(report.is_good() && report.ended, "{report:?}");
    starts(&audit, 1 << 20).close().unwrap();
    assert_eq!(chains(&audit).unwrap().len(), 3, "and gone on with");
}

#[test]
fn an_end_that_is_no_record_is_not_gone_on_from() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    starts(&audit, 1 << 20).close().unwrap();
    let file = last_file(&audit);
    fs::write(&file, "no record\n").unwrap();
    let error = Trail::start(Recorder::one_shot(&audit, &AuditSettings::default()).unwrap(), AuditLimits::default());
    let error = error.err().unwrap().to_string();
    assert!(error.contains("000001.jsonl") && error.contains("audit verify"), "{error}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "no record\n", "and it is left as it is");
}

#[tokio::test]
async fn an_outcome_is_waited_for_while_others_have_their_turn() {
    let folder = tempfile::tempdir().unwrap();
    let audit = folder.path().join("audit");
    let limits = AuditLimits { intent_time: Duration::from_secs(1), ..AuditLimits::default() };
    // A disk that takes its time to sync would make an intent late.
    let settings = AuditSettings { sync: false, ..AuditSettings::default() };
    let trail = Trail::start(Recorder::one_shot(&audit, &settings).unwrap(), limits).unwrap();
    let intent = crate::Record::new("intent", &serde_json::json!({"id": "i"}));
    assert!(trail.intent("i", intent).await);
    let turn = LockFile::take(&audit.join("one-shot.lock")).unwrap();
    assert!(!trail.note(crate::Record::limited("s", "rate", 1)).await, "nothing is done on the strength of it");
    let over = tokio::task::spawn_blocking(move || {
        thread::sleep(Duration::from_secs(2));
        drop(turn);
    });
    let (id, outcome) = ("i".to_owned(), crate::RecordedOutcome::Ok);
    let outcome = OutcomeRecord { id, outcome, detail: None, duration_ms: 1, bytes: 1, exchange: None };
    assert!(trail.outcome(&outcome).await, "it was recorded, only later");
    over.await.unwrap();
    trail.close().unwrap();
    assert_eq!(verified(&audit).unknown, 0);
}
