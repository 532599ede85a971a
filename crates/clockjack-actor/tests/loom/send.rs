//! Senders that wait for room, senders that do not, and the runner.

use clockjack_actor::send::model::{MailboxModel, SendOutcome};
use loom::{sync::Arc, thread};

/// What a runner has taken, in order.
fn run(desk: &MailboxModel) -> Vec<u32> {
    let mut taken = Vec::new();
    desk.run(&mut taken);
    taken
}

#[test]
fn who_waits_is_seen_and_not_overtaken_by_its_own_tell() {
    loom::model(|| {
        let desk = Arc::new(MailboxModel::new(1));
        assert!(desk.tell(0));
        let sender = {
            let desk = Arc::clone(&desk);
            thread::spawn(move || {
                assert_ne!(desk.wait_for_room(1), SendOutcome::Stopped);
                desk.tell(2)
            })
        };
        let runner = {
            let desk = Arc::clone(&desk);
            thread::spawn(move || run(&desk))
        };
        let told = sender.join().unwrap();
        let mut taken = runner.join().unwrap();
        desk.run(&mut taken);
        let all: &[u32] = if told { &[0, 1, 2] } else { &[0, 1] };
        assert_eq!(taken, all);
        assert!(desk.tell(3), "the mailbox is open again");
        assert_eq!(run(&desk), [3]);
    });
}

#[test]
fn who_gives_up_knows_whether_it_was_sent() {
    loom::model(|| {
        let desk = Arc::new(MailboxModel::new(1));
        assert!(desk.tell(0));
        let sender = {
            let desk = Arc::clone(&desk);
            thread::spawn(move || match desk.wait_for_room(1) {
                SendOutcome::Sent => true,
                SendOutcome::Waits(ticket) => desk.cancel(ticket).is_none(),
                SendOutcome::Stopped => panic!("nobody stops it"),
            })
        };
        let runner = {
            let desk = Arc::clone(&desk);
            thread::spawn(move || run(&desk))
        };
        let was_sent = sender.join().unwrap();
        let mut taken = runner.join().unwrap();
        desk.run(&mut taken);
        let all: &[u32] = if was_sent { &[0, 1] } else { &[0] };
        assert_eq!(taken, all);
        assert!(desk.tell(2), "the mailbox is open again");
        assert_eq!(run(&desk), [2]);
    });
}

#[test]
fn who_waits_while_the_actor_stops_has_its_message_back() {
    loom::model(|| {
        let desk = Arc::new(MailboxModel::new(1));
        assert!(desk.tell(0));
        let sender = {
            let desk = Arc::clone(&desk);
            thread::spawn(move || desk.wait_for_room(1))
        };
        let runner = {
            let desk = Arc::clone(&desk);
            thread::spawn(move || desk.stop())
        };
        let place = sender.join().unwrap();
        runner.join().unwrap();
        match place {
            SendOutcome::Waits(ticket) => assert_eq!(desk.cancel(ticket), Some(1)),
            SendOutcome::Stopped => {}
            SendOutcome::Sent => panic!("there was no room"),
        }
    });
}
