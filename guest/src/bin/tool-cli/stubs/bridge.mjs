// The one request that a tool behind the bridge needs, made by tool-cli stubs. Node's own modules only.
import { readFileSync } from "node:fs";
import { request } from "node:http";

/** A call that was refused, or that the tool reports as failed. `data` is what the bridge says of it. */
export class ToolError extends Error {
  constructor(message, data) {
    super(message);
    this.data = data;
  }
}

/** A variable; one that an agent left unfilled is not there. */
function variable(name) {
  const value = process.env[name] ?? "";
  return value.startsWith("${" + name) ? "" : value;
}

function token() {
  const [token, file] = [variable("TOOL_CLI_TOKEN"), variable("TOOL_CLI_TOKEN_FILE")];
  return (file && !token ? readFileSync(file, "utf8") : token).trim();
}

function send(body) {
  const socketPath = variable("TOOL_CLI_SOCKET");
  const place = socketPath
    ? { socketPath, host: "localhost" }
    : { host: variable("TOOL_CLI_HOST") || "127.0.0.1", port: Number(variable("TOOL_CLI_PORT") || 7179) };
  const headers = {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    Authorization: `Bearer ${token()}`,
  };
  const timeout = Number(variable("TOOL_CLI_TIMEOUT_MS") || 300000);
  return new Promise((resolve, reject) => {
    const sent = request({ ...place, method: "POST", path: "/", headers, timeout, agent: false }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("end", () => resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString("utf8") }));
      answer.on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer within ${timeout} ms`)));
    sent.on("error", reject);
    sent.end(body);
  });
}

/** Calls a tool: its structured result, the text of its content, or its content. */
export async function call(server, tool, args) {
  const params = { server, tool, arguments: args };
  const { status, text } = await send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "callTool", params }));
  let answer;
  try {
    answer = JSON.parse(text);
  } catch {
    throw new ToolError(`the bridge answered HTTP ${status}: ${text.slice(0, 1000)}`);
  }
  if (answer.error || status !== 200) {
    throw new ToolError(String(answer.error?.message ?? answer.error), answer.error?.data);
  }
  const { content = [], isError, structuredContent } = answer.result;
  const texts = content.filter((block) => block.type === "text").map((block) => block.text);
  if (isError) {
    throw new ToolError(texts.join("\n") || "the tool reported an error without a word", answer.result);
  }
  return structuredContent ?? (texts.length === content.length ? texts.join("\n") : content);
}
