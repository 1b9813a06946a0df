// The one request that a tool behind the bridge needs, made by tool-cli stubs.

/** A call that was refused, or that the tool reports as failed. `data` is what the bridge says of it. */
export class ToolError extends Error {
  data: unknown;
}

/** Calls a tool: its structured result, the text of its content, or its content. */
export function call(server: string, tool: string, args: object): Promise<any>;
