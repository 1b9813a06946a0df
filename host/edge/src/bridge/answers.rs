//! What comes of a request, as the bridge writes it.

use bytes::Bytes;
use footbridge_proto::{rpc::raw, wire::CheckedCall};
use http::{Response, StatusCode};
use serde_json::value::RawValue;

use crate::{
    dialect::{Encoder, Found},
    http::response::Pieces,
    json_rpc::{RpcAnswer, text_of_event},
    wording::error_of,
};
use footbridge_calls::{call::Checked, events::CallEvent};

/// Writes the answer to one request.
pub(super) struct RpcEncoder(pub(super) RpcAnswer);

impl Encoder for RpcEncoder {
    fn whole(&self, answer: Found) -> Response<Pieces> {
        match answer {
            Ok(text) => self.0.result(text, ""),
            Err(failure) => self.0.error(StatusCode::OK, &error_of(&failure)),
        }
    }

    fn checked(&self, checked: Checked) -> Box<RawValue> {
        let (policy, rule) = checked.by.map_or((None, None), |by| (Some(by.policy), by.rule));
        raw(&CheckedCall { decision: checked.decision.as_str().to_owned(), policy, rule })
    }

    fn event(&mut self, event: &CallEvent) -> Option<Bytes> {
        Some(text_of_event(event))
    }

    fn last_event(&self, answer: Found) -> Pieces {
        let answer = answer.map(|text| (text, "")).map_err(|failure| error_of(&failure));
        self.0.last_event(b"event: result\ndata: ", answer)
    }
}
