//! Actors with type parameters: the generated enum and trait have all of them.

use core::{fmt::Display, time::Duration};

use clockjack_macros::actor;

use crate::stub::{ReplyTo, Stage};

const SECOND: Duration = Duration::from_secs(1);

struct Cache<K, V, const N: usize> {
    entries: Vec<(K, V)>,
}

// The messages contain the private type itself.
#[actor(crate = crate::stub, vis = "")]
impl<K, V: Clone + Send + 'static, const N: usize> Cache<K, V, N>
where
    K: PartialEq + Send + 'static,
    Self: Sized,
{
    #[msg]
    fn put(&mut self, key: K, value: V) {
        if self.entries.len() == N {
            self.entries.remove(0);
        }
        self.entries.push((key, value));
    }

    #[ask]
    fn get(&self, key: K) -> Option<V> {
        self.entries.iter().find(|(k, _)| *k == key).map(|(_, v)| v.clone())
    }

    #[msg]
    fn take_over(&mut self, other: Self) {
        self.entries.extend(other.entries);
    }

    #[ask]
    async fn swap(&mut self, mut others: Vec<Self>, reply_to: ReplyTo<Vec<Self>>) {
        core::mem::swap(&mut self.entries, &mut others[0].entries);
        reply_to.reply(others);
    }
}

/// No message mentions a parameter.
struct Printer<T, F> {
    value: T,
    format: F,
    lines: Vec<String>,
}

#[actor(crate = crate::stub)]
impl<T, F> Printer<T, F>
where
    T: Display + 'static,
    F: Fn(&T) -> String + 'static,
{
    #[msg]
    fn print(&mut self) {
        let line = (self.format)(&self.value);
        self.lines.push(line);
    }

    #[ask]
    fn lines(&self) -> Vec<String> {
        self.lines.clone()
    }
}

/// One block for one value of the parameter.
struct Meter<T>(Vec<T>);

#[actor(crate = crate::stub, msg = "Metre", api = "Metering", vis = "pub(crate)")]
impl Meter<f64> {
    #[msg]
    fn add(&mut self, sample: f64) {
        self.0.push(sample);
    }

    #[ask]
    fn mean(&self) -> Option<f64> {
        let n_samples = u32::try_from(self.0.len()).expect("few samples");
        (n_samples > 0).then(|| self.0.iter().sum::<f64>() / f64::from(n_samples))
    }
}

#[test]
fn a_generic_actor_has_generic_messages() {
    let mut stage = Stage::new(Cache::<String, u32, 2> { entries: Vec::new() });
    let cache = stage.target.clone();
    for (index, key) in ["a", "b", "c"].into_iter().enumerate() {
        cache.put(key.to_owned(), u32::try_from(index).unwrap()).unwrap();
    }
    let (a, c) = (cache.get("a".to_owned(), SECOND), cache.get("c".to_owned(), SECOND));
    stage.run();
    assert_eq!((a.answer(), c.answer()), (Some(None), Some(Some(2))));
}

#[test]
fn self_in_a_signature_is_the_actor_not_the_message() {
    let mut stage = Stage::new(Cache::<u8, u8, 2> { entries: vec![(1, 1)] });
    let cache = stage.target.clone();
    cache.take_over(Cache { entries: vec![(2, 2)] }).unwrap();
    let swapped = cache.swap(vec![Cache { entries: vec![(3, 3)] }], SECOND);
    stage.run();
    assert_eq!(stage.actor.entries, [(3, 3)]);
    assert_eq!(swapped.answer().unwrap()[0].entries, [(1, 1), (2, 2)]);
}

#[test]
fn parameters_that_no_message_mentions_do_no_harm() {
    let format = |n: &u32| format!("<{n}>");
    let mut stage = Stage::new(Printer { value: 7, format, lines: Vec::new() });
    let printer = stage.target.clone();
    printer.print().unwrap();
    printer.tell(PrinterMsg::Print).unwrap();
    let lines = printer.lines(SECOND);
    stage.run();
    assert_eq!(lines.answer().unwrap(), ["<7>", "<7>"]);
    assert_eq!(format!("{:?}", PrinterMsg::<u32, fn(&u32) -> String>::Print), "Print");
}

#[test]
fn names_and_visibility_can_be_chosen() {
    let mut stage = Stage::new(Meter(Vec::new()));
    let meter = stage.target.clone();
    meter.tell(Metre::Add { sample: 1.0 }).unwrap();
    Metering::add(&meter, 2.0).unwrap();
    let mean = meter.mean(SECOND);
    stage.run();
    assert_eq!(mean.answer(), Some(Some(1.5)));
}

/// The message has the name of a parameter that it does not mention.
struct Named<T> {
    _value: T,
    n_calls: u32,
}

#[actor(crate = crate::stub)]
impl<T: 'static> Named<T> {
    #[msg]
    fn t(&mut self) {
        self.n_calls += 1;
    }
}

#[test]
fn a_message_may_be_called_like_a_parameter_that_none_mentions() {
    let mut stage = Stage::new(Named { _value: (), n_calls: 0 });
    stage.target.t().unwrap();
    stage.run();
    assert_eq!(stage.actor.n_calls, 1);
}
