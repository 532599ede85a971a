//! Traces for OpenTelemetry: an order passes through two actors, and is one trace.
//!
//! `cargo run -p clockjack-opentelemetry-example`
//!
//! The spans stay in memory, and the program prints them. A program that sends them to a collector
//! passes another exporter to [`install`], for example that of the crate `opentelemetry-otlp`.
#![expect(clippy::print_stdout, reason = "an example shows something")]

use core::error::Error;

use clockjack::{prelude::*, rt::TracingSpans};
use opentelemetry::trace::{SpanId, TracerProvider as _};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing::{info, info_span};
use tracing_subscriber::layer::SubscriberExt as _;

/// Longer than any answer takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is in stock.
struct Stock {
    left: u32,
}

#[actor]
impl Stock {
    #[ask]
    fn take(&mut self, pieces: u32) -> bool {
        let is_there = pieces <= self.left;
        self.left -= if is_there { pieces } else { 0 };
        // An event of the span of this message.
        info!(left = self.left, "taken from stock");
        is_there
    }
}

/// Takes orders.
struct Orders {
    stock: ActorRef<StockMsg>,
}

#[actor]
impl Orders {
    #[ask]
    fn order(
        &mut self,
        cx: &mut Context<'_, Self>,
        pieces: u32,
        reply_to: ReplyTo<bool>,
    ) -> Result<(), Failure> {
        // The future runs inside the span of this message, and ends with it.
        cx.spawn_future(self.stock.take(pieces, PATIENCE), |_, _, taken| {
            reply_to.reply(taken?);
            Ok(())
        })?;
        Ok(())
    }
}

/// Makes OpenTelemetry the subscriber of the program.
fn install(provider: &SdkTracerProvider) -> Result<(), Box<dyn Error>> {
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("shop"));
    tracing::subscriber::set_global_default(tracing_subscriber::registry().with(layer))?;
    Ok(())
}

/// Runs the shop for one order, and returns its spans.
fn run() -> Result<Vec<SpanData>, Box<dyn Error>> {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    install(&provider)?;

    let rt = Runtime::start(ActorSystem::builder("shop").message_spans(TracingSpans))?;
    let stock = rt.spawn("stock", || Stock { left: 5 })?;
    let orders = rt.spawn("orders", move || Orders { stock: stock.clone() })?;
    // The request carries the span in which it is sent.
    let answer = info_span!("checkout").in_scope(|| orders.order(2, PATIENCE));
    assert!(rt.block_on(answer)?, "there were five");
    // After this, no message refers to a span: all of them are closed and exported.
    assert!(rt.shutdown(PATIENCE).is_clean());
    provider.force_flush()?;
    Ok(exporter.get_finished_spans()?)
}

/// The spans as a tree: each below its parent, with the path of its actor.
fn tree(spans: &[SpanData], parent: SpanId, depth: usize, lines: &mut Vec<String>) {
    for span in spans.iter().filter(|span| span.parent_span_id == parent) {
        let path = span.attributes.iter().find(|pair| pair.key.as_str() == "path");
        let path = path.map_or_else(String::new, |pair| format!(" {}", pair.value));
        lines.push(format!("{:indent$}{}{path}", "", span.name, indent = 2 * depth));
        let texts = span.events.iter().map(|event| format!("- {}", event.name));
        lines.extend(texts.map(|text| format!("{:indent$}{text}", "", indent = 2 * depth + 2)));
        tree(spans, span.span_context.span_id(), depth + 1, lines);
    }
}

fn lines(spans: &[SpanData]) -> Vec<String> {
    let mut lines = Vec::new();
    tree(spans, SpanId::INVALID, 0, &mut lines);
    lines
}

fn main() -> Result<(), Box<dyn Error>> {
    lines(&run()?).iter().for_each(|line| println!("{line}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_one_trace_with_a_span_per_message() {
        let spans = run().expect("it runs");
        let expected = [
            "checkout",
            "  opentelemetry_example::OrdersMsg /user/orders",
            "    opentelemetry_example::StockMsg /user/stock",
            "      - taken from stock",
        ];
        assert_eq!(lines(&spans), expected);
        let trace = spans[0].span_context.trace_id();
        assert!(spans.iter().all(|span| span.span_context.trace_id() == trace));
    }
}
