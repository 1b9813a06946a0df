//! One thing used for two calls, or for two answers.

use footbridge_calls::provider::CallContext;
use footbridge_calls::provider::Outgoing;
use footbridge_calls::provider::ToolProvider;
use footbridge_calls::reply::Reply;

async fn one_admission_for_two_calls(provider: &dyn ToolProvider, outgoing: Outgoing, context: CallContext) {
    let _ = provider.call(outgoing, context.clone()).await;
    let _ = provider.call(outgoing, context).await; //~ E0382
}

async fn a_call_sent_on_after_it_was_taken_apart(provider: &dyn ToolProvider, outgoing: Outgoing, context: CallContext) {
    let _ = outgoing.into_parts();
    let _ = provider.call(outgoing, context).await; //~ E0382
}

fn one_answer_given_twice(reply: Reply) {
    let _ = reply.into_answer();
    let _ = reply.into_answer(); //~ E0382
}
