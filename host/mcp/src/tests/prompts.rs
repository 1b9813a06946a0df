//! Prompts of a server: what is listed of them, and what comes back.

use footbridge_calls::request::{Completed, Target};
use serde_json::json;

use super::{admitted::entry, *};

async fn get(servers: &Servers, name: &str, arguments: &str) -> Outgoing {
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    let takes: Vec<Value> = arguments.as_object().unwrap().keys().map(|name| json!({ "name": name })).collect();
    let prompt = json!({"name": name, "arguments": takes});
    let by = Arc::new(about(|catalogue, limits| catalogue.add_prompt(entry(&prompt), limits)));
    admitted(servers, "x", Target::Prompt(name.to_owned()), &arguments, by).await
}

async fn got(servers: &Servers, name: &str, arguments: &str) -> Outcome {
    servers.send(get(servers, name, arguments).await, &CancellationToken::new(), Events::default()).await
}

#[tokio::test]
async fn usable_prompts_are_listed_and_the_rest_left_out() {
    let servers = Stage::of("prompts").ready().await;
    let offered = catalogue(&servers).await;
    assert!(
        offered
            .entries()
            .prompts()
            .map(|prompt| prompt.name())
            .eq(["cut", "env", "grow", "refused", "rubbish", "told"])
    );
    let told = offered.entries().prompt("told").unwrap();
    assert!(told.definition().get().contains(r#""title":"Told""#));
    let takes: Vec<_> = told.arguments().iter().map(|argument| (argument.name.as_str(), argument.required)).collect();
    assert_eq!(takes, [("a", true), ("b", false)]);
    assert_eq!(report(&servers).left_out, 6, "{:?}", report(&servers).left_out_reasons);
    assert_eq!(offered.entries().tools().len(), 1, "and they take no tools with them");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_server_that_announces_no_prompts_is_not_asked_for_any() {
    let servers = Stage::of("ok").ready().await;
    assert_eq!(catalogue(&servers).await.entries().prompts().len(), 0);
    assert_eq!(report(&servers).left_out, 1, "a resource");
    servers.shutdown().await;
}

#[tokio::test]
async fn a_prompt_comes_back_as_the_server_wrote_it_and_rubbish_is_named() {
    let servers = Stage::of("prompts").ready().await;
    let told = raw(got(&servers, "told", r#"{"a":"x","b":"é\n"}"#).await);
    assert!(told.contains(r#"{\"a\":\"x\",\"b\":\"é\\n\"}"#) && told.contains(r#""unheard":0.1"#), "{told}");
    let cut = got(&servers, "cut", "{}").await;
    assert!(matches!(cut, Outcome::Unknown(NoAnswer::Unusable)), "{cut:?}");
    let refused = got(&servers, "refused", "{}").await;
    assert!(matches!(refused, Outcome::ServerError { code: -32602, .. }), "{refused:?}");
    servers.shutdown().await;
}

#[tokio::test]
async fn values_of_secrets_are_taken_out_of_prompts() {
    let mut stage = Stage::with(with_env(stdio("x", &["prompts"]), "API_KEY", "very-secret-value"));
    stage.secrets.push(Secret::new("very-secret-value"));
    let servers = stage.ready().await;
    let said = raw(got(&servers, "env", "{}").await);
    assert!(said.contains("API_KEY=[redacted]") && !said.contains("very-secret"), "{said}");
    servers.shutdown().await;
}

#[tokio::test]
async fn prompts_are_listed_again_when_the_server_says_that_they_changed() {
    let servers = Stage::of("prompts").ready().await;
    let before = turn(&servers);
    raw(got(&servers, "grow", "{}").await);
    ready_again(&servers, before).await;
    assert!(catalogue(&servers).await.entries().prompt("grown0").is_some());
    servers.shutdown().await;
}

#[tokio::test]
async fn a_completion_says_what_it_is_about_and_is_asked_only_of_servers_that_complete() {
    let said = json!({"argument": {"name": "a", "value": "é"}, "context": {"arguments": {"b": "x"}}});
    let prompt = json!({"name": "told", "arguments": [{"name": "a"}, {"name": "b"}]});
    for (mode, completes) in [("prompts", true), ("ok", false)] {
        let servers = Stage::of(mode).ready().await;
        let target = Target::Completion(Completed::Prompt { name: "told".to_owned() });
        let by = Arc::new(about(|catalogue, limits| catalogue.add_prompt(entry(&prompt), limits)));
        let outgoing = admitted(&servers, "x", target, &said, by).await;
        let outcome = servers.send(outgoing, &CancellationToken::new(), Events::default()).await;
        if completes {
            let result: Value = serde_json::from_str(&raw(outcome)).unwrap();
            assert_eq!(result["completion"]["hasMore"], true);
            let asked: Value = serde_json::from_str(result["completion"]["values"][0].as_str().unwrap()).unwrap();
            let about = json!({"name": "told", "type": "ref/prompt"});
            assert_eq!(asked, json!([about, said["argument"], said["context"]]));
        } else {
            assert!(matches!(outcome, Outcome::NotSent(NotSent::Unavailable(_))), "{outcome:?}");
        }
        servers.shutdown().await;
    }
}
