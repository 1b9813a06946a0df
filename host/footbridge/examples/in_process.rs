//! Serves one tool of this process to a sandbox, without any MCP server.
//!
//! ```sh
//! cargo run -p footbridge --example in_process -- RECORD-FOLDER [LISTEN]    # serves until standard input ends
//! cargo run -p footbridge --example in_process -- --once RECORD-FOLDER      # makes one call to itself and ends
//! ```
//!
//! It prints what a client's environment needs, one `NAME=value` a line: keep that from others, the token opens the
//! session.
#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::{error::Error, io::Read as _, path::Path};

use footbridge::{Endpoint, FileJournal, InProcess, Served, Server, ToolContext, ToolDefinition, ToolResult};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What the tool takes: guests that send something else never get here.
#[derive(serde::Deserialize)]
struct Question {
    city: String,
}

async fn get_weather(question: Question, context: ToolContext) -> Result<ToolResult, String> {
    context.progress(1.0, Some(2.0), Some("looking out of the window"));
    match question.city.as_str() {
        "Atlantis" => Err("Atlantis has no weather any more: ask for another city".to_owned()),
        city => Ok(ToolResult::json(json!({"city": city, "celsius": 21}))),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (once, args) = match args.split_first() {
        Some((first, rest)) if first == "--once" => (true, rest),
        _ => (false, &args[..]),
    };
    let folder = args.first().ok_or("usage: in_process [--once] RECORD-FOLDER [LISTEN]")?;
    let listen: Endpoint = args.get(1).map_or("tcp:127.0.0.1:0", String::as_str).parse()?;

    let weather = InProcess::new("weather")
        .tool(
            ToolDefinition::new("get_weather")
                .description("The weather in a city, now")
                .input_schema(json!({
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                    "additionalProperties": false
                }))
                .output_schema(json!({"type": "object"})),
            get_weather,
        )
        .build()?;
    let server = Server::over(weather).start(FileJournal::create(Path::new(folder))?)?;
    let served = server.serve("example", &listen)?;
    if once {
        println!("{}", call(&served).await?);
    } else {
        for (name, value) in served.environment() {
            println!("{name}={value}");
        }
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
    }
    server.stop().await?;
    Ok(())
}

/// One call as any HTTP client makes it. Programs in Rust have `footbridge_guest::Client`.
async fn call(served: &Served) -> Result<Value, Box<dyn Error>> {
    let Endpoint::Tcp(tcp) = &served.endpoint else { return Err("--once calls itself over TCP".into()) };
    let params = json!({"server": "weather", "tool": "get_weather", "arguments": {"city": "Bern"}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "callTool", "params": params}).to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        served.token.expose(),
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(tcp.primary()).await?;
    stream.write_all((head + &body).as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").ok_or("the answer has no body")?;
    Ok(serde_json::from_str(body)?)
}
