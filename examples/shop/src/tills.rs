//! The shop, its tills and its ledger.

use clockjack::prelude::*;

use crate::illness::{self, Illness};

/// How often a till sells something.
const SALE_PERIOD: Duration = Duration::from_millis(50);
/// Longer than anybody looks.
const HOUR: Duration = Duration::from_secs(3600);
/// How many messages the ledger may have.
const LEDGER_MAX: usize = 1000;

/// The parent of all.
pub(crate) struct Shop {
    pub(crate) illness: Option<Illness>,
    pub(crate) n_tills: u32,
}

impl Actor for Shop {
    type Msg = ();

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let is_slow = self.illness == Some(Illness::Mailbox);
        let props = Props::new(move || Ledger { sum: 0, is_slow });
        let ledger = cx.spawn_child("ledger", props.mailbox(Mailbox::bounded(LEDGER_MAX)))?;
        let mut first = None;
        for number in 0..self.n_tills {
            let till = Till {
                number,
                ledger: ledger.clone(),
                neighbour: first.clone(),
                illness: self.illness.filter(|illness| is_ill(*illness, number)),
                n_sold: 0,
            };
            let strategy = Strategy::restart();
            let props = Props::new(move || till.clone()).supervise(strategy);
            let till = cx.spawn_child(&format!("till-{number}"), props)?;
            first.get_or_insert(till);
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, _: &mut Context<'_, Self>, (): ()) -> Result<Next, Failure> {
        Ok(Next::Stay)
    }
}

/// Whether the till with this number has this illness.
fn is_ill(illness: Illness, number: u32) -> bool {
    match illness {
        Illness::Stuck | Illness::Restarts | Illness::Dead | Illness::Late | Illness::Leak => {
            number == 7
        }
        Illness::Cycle => number < 2,
        Illness::Busy => number.is_multiple_of(8),
        _ => true,
    }
}

/// Something was sold.
#[derive(Clone, Copy)]
pub(crate) struct Sale(u64);

/// Books what was sold.
struct Ledger {
    sum: u64,
    is_slow: bool,
}

impl Actor for Ledger {
    type Msg = Sale;

    fn receive(&mut self, _: &mut Context<'_, Self>, sale: Sale) -> Result<Next, Failure> {
        if self.is_slow {
            illness::take(Duration::from_millis(2));
        }
        self.sum = self.sum.wrapping_add(sale.0);
        Ok(Next::Stay)
    }
}

/// The messages of a till.
pub(crate) enum TillMsg {
    Sell,
    Price(ReplyTo<u64>),
    /// The first till learns who its neighbour is.
    Meet(ActorRef<TillMsg>),
}

/// Sells something, again and again.
#[derive(Clone)]
struct Till {
    number: u32,
    ledger: ActorRef<Sale>,
    neighbour: Option<ActorRef<TillMsg>>,
    illness: Option<Illness>,
    n_sold: u64,
}

impl Actor for Till {
    type Msg = TillMsg;

    fn started(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        let first = SALE_PERIOD * (self.number % 10 + 1) / 10;
        cx.timers().fixed_rate_after("sell", first, SALE_PERIOD, || TillMsg::Sell)?;
        if self.number == 1
            && let Some(first) = &self.neighbour
        {
            first.tell(TillMsg::Meet(cx.self_ref()))?;
        }
        Ok(Next::Stay)
    }

    fn receive(&mut self, cx: &mut Context<'_, Self>, msg: TillMsg) -> Result<Next, Failure> {
        match msg {
            TillMsg::Price(reply_to) => reply_to.reply(self.n_sold),
            TillMsg::Meet(neighbour) => self.neighbour = Some(neighbour),
            TillMsg::Sell => return self.sell(cx),
        }
        Ok(Next::Stay)
    }
}

impl Till {
    fn sell(&mut self, cx: &mut Context<'_, Self>) -> Result<Next, Failure> {
        self.n_sold += 1;
        match self.illness {
            Some(Illness::Stuck) => illness::take(HOUR),
            Some(Illness::Restarts) => return Err(Failure::msg("the drawer is jammed")),
            Some(Illness::Cycle) => {
                if let Some(neighbour) = self.neighbour.clone() {
                    let price = neighbour.ask(TillMsg::Price, HOUR);
                    cx.wait(price, |_, _, _| Ok(Next::Stay))
                        .map_err(|_| Failure::msg("it waits already"))?;
                }
            }
            Some(Illness::Dead) => {
                // The desk closes after the first message; nobody handles the others.
                let props = Props::from_fn(|_cx, _: Sale| Next::Stop);
                if let Ok(desk) = cx.spawn_child("desk", props) {
                    for _ in 0..5 {
                        let _refused = desk.tell(Sale(self.n_sold));
                    }
                }
            }
            Some(Illness::Busy) => {
                let work = async { illness::compute(Duration::from_millis(20)) };
                // Nobody waits for the result.
                drop(cx.system().executor().spawn_future(work));
            }
            Some(Illness::Late) => illness::take(Duration::from_millis(80)),
            Some(Illness::Leak) => {
                for _ in 0..20 {
                    cx.spawn_anonymous_child(Props::from_fn(|_cx, (): ()| ()))?;
                }
            }
            _ => {}
        }
        // A full ledger is the ledger's illness, not the till's.
        let _refused = self.ledger.tell(Sale(self.n_sold));
        Ok(Next::Stay)
    }
}
