// What the panel asks of its server, and a run's events as they come. No other host is ever asked.

/** A request; throws an Error with the server's own message. */
export async function ask(path, { method = "GET", body } = {}) {
  const headers = { accept: "application/json", "x-ddx-panel": "1" };
  if (body !== undefined) headers["content-type"] = "application/json";
  let reply;
  try {
    reply = await fetch(`/ddx/v1${path}`, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch {
    throw new Error("The server does not answer.");
  }
  if (reply.status === 401) {
    location.reload(); // the session is over: the page that asks for a key comes
    throw new Error("The session is over.");
  }
  if (reply.status === 204) return null;
  const value = await reply.json().catch(() => null);
  if (!reply.ok) throw new Error(value?.error?.message ?? `The server answered ${reply.status}.`);
  return value;
}

/** A run's events, also behind a broken connection, until its end or `signal`. Calls `heard` with each message. */
export async function watch(runId, heard, signal) {
  let after = 0;
  for (let pause = 300; !signal.aborted; pause = Math.min(pause * 2, 5000)) {
    try {
      const reply = await fetch(`/ddx/v1/runs/${runId}/events?after=${after}`, { headers: { "x-ddx-panel": "1" }, signal });
      if (!reply.ok) throw new Error(String(reply.status));
      for await (const { id, data } of messages(reply.body)) {
        if (id) after = id;
        pause = 300;
        heard(data);
        if (data.type === "end") return;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (["401", "404"].includes(error.message)) throw new Error("The run cannot be watched.");
    }
    await new Promise((done) => setTimeout(done, pause));
  }
}

async function* messages(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  while (true) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const data = lines.find((line) => line.startsWith("data: "));
      if (data) yield { id: Number(lines.find((line) => line.startsWith("id: "))?.slice(4) ?? 0), data: JSON.parse(data.slice(6)) };
    }
  }
}
