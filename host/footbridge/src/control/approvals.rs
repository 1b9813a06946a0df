//! What commands ask about approvals, the same for every harness.

use super::{
    server::{ControlPeer, sent},
    wire::{
        AllowApproval, Answered, ApprovalRequest, By, ListApprovals, ListRemembered, Refusal, RefusalKind,
        RevokeApproval,
    },
};
use footbridge_calls::approval::ApprovalInfo;
use footbridge_calls::approval::{Answer, ApprovalId, Approvals, Given, NotAnswered};

/// Carries a request out. `is_answered_here` says whether the harness takes answers.
pub(crate) fn handle(
    approvals: &Approvals,
    is_answered_here: bool,
    request: ApprovalRequest,
    peer: ControlPeer,
) -> Result<serde_json::Value, Refusal> {
    match request {
        ApprovalRequest::ListApprovals(ListApprovals {}) => {
            let is_answered_elsewhere = !is_answered_here;
            let all = approvals.list().into_iter();
            sent(all.map(|one| ApprovalInfo { is_answered_elsewhere, ..one }).collect::<Vec<_>>())
        }
        ApprovalRequest::ListRemembered(ListRemembered {}) => sent(approvals.remembered()),
        // Who may not say yes here may take one back.
        ApprovalRequest::RevokeApproval(RevokeApproval { id: text }) => {
            approvals.revoke(id(&text)?, &peer.operator(), "approvals revoke").map_err(refusal)?;
            sent(Answered { id: text })
        }
        ApprovalRequest::ShowApproval(asked) => {
            let shown = id(&asked.id).and_then(|id| approvals.show(id).map_err(refusal));
            shown.and_then(|mut shown| {
                // What is remembered was answered.
                shown.info.is_answered_elsewhere = !is_answered_here && !shown.info.is_remembered;
                sent(shown)
            })
        }
        ApprovalRequest::AllowApproval(asked) => {
            allowed(&asked).and_then(|how| answer(approvals, &asked.id, how, asked.by, peer))
        }
        ApprovalRequest::DenyApproval(asked) => {
            let how = if asked.cancel { Answer::Cancel } else { Answer::Deny };
            answer(approvals, &asked.id, how, asked.by, peer)
        }
    }
}

/// Refuses what waits for no answer here, as it is said everywhere.
pub(crate) fn check_live(approvals: &Approvals, text: &str) -> Result<(), Refusal> {
    id(text).and_then(|id| approvals.check_live(id).map_err(refusal))
}

/// What a yes says.
fn allowed(asked: &AllowApproval) -> Result<Answer, Refusal> {
    match (&asked.content, asked.fields.is_empty(), asked.remember) {
        (None, true, remember) => Ok(Answer::Allow { remember }),
        (None, false, false) => Ok(Answer::Accept(Given::Fields(asked.fields.clone()))),
        (Some(content), true, false) => Ok(Answer::Accept(Given::Content(content.clone()))),
        _ => Err(Refusal::new(RefusalKind::Invalid, "fields, content and remember exclude each other")),
    }
}

fn id(text: &str) -> Result<ApprovalId, Refusal> {
    text.parse().map_err(|error| Refusal::new(RefusalKind::Invalid, format!("{text:?}: {error}")))
}

fn refusal(error: NotAnswered) -> Refusal {
    let kind = match error {
        NotAnswered::Unknown(_) => RefusalKind::NotFound,
        NotAnswered::Over(..) | NotAnswered::NoYes(..) => RefusalKind::Taken,
        NotAnswered::Unfit(..) => RefusalKind::Invalid,
    };
    Refusal::new(kind, error.to_string())
}

fn answer(
    approvals: &Approvals,
    text: &str,
    answer: Answer,
    by: By,
    peer: ControlPeer,
) -> Result<serde_json::Value, Refusal> {
    let id = id(text)?;
    if !approvals.asks_people() {
        approvals.check_live(id).map_err(refusal)?;
        let message = "people are not asked here: \"watch = false\" in [approval] of footbridge.toml says so";
        return Err(Refusal::new(RefusalKind::Failed, message));
    }
    let means = format!("approvals {}", by.as_str());
    approvals.answer(id, answer, &peer.operator(), &means).map_err(refusal)?;
    sent(Answered { id: id.to_string() })
}
