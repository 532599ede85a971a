// A view as this page knows it: all frames so far, put together. The same as `frame.rs`.

export class Mirror {
  head = null;
  rows = null;

  apply(frame) {
    if (frame.head) this.head = frame.head;
    const delta = frame.rows;
    if (!delta) return;
    const rows = this.rows ?? new Map();
    for (const key of delta.removed) rows.delete(key);
    for (const [key, row] of delta.changed) rows.set(key, row);
    const order = delta.order ?? [...(this.rows ?? rows).keys()];
    this.rows = new Map(order.filter((key) => rows.has(key)).map((key) => [key, rows.get(key)]));
  }

  value() {
    const rows = this.rows && [...this.rows.values()];
    if (!this.head) return rows;
    return rows ? { ...this.head, rows } : this.head;
  }
}

// Reads events from a stream of text; `each` gets the name and the data.
export async function readEvents(body, each) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      let name = "";
      let data = "";
      for (const line of event.split("\n")) {
        if (line.startsWith("event: ")) name = line.slice(7);
        if (line.startsWith("data: ")) data = line.slice(6);
      }
      each(name, data);
    }
  }
}
