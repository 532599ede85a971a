//! Types with every kind of field, and the same types for serde.

use core::time::Duration;
use std::collections::BTreeMap;

use clockjack_actor::ReplyTo;
use clockjack_macros::Wire;
use serde::{Deserialize, Serialize};

/// Every kind of field.
#[derive(Clone, Debug, PartialEq, Wire, Serialize, Deserialize)]
#[wire(id = "test.All", version = 3)]
pub(crate) struct All {
    pub(crate) unsigned: (u8, u16, u32, u64, u128),
    pub(crate) signed: (i8, i16, i32, i64, i128),
    pub(crate) size: usize,
    pub(crate) floats: (f32, f64),
    pub(crate) text: String,
    pub(crate) boxed: Box<str>,
    pub(crate) letter: char,
    pub(crate) flag: bool,
    pub(crate) maybe: Option<Box<Shape>>,
    pub(crate) result: Result<u16, String>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) shapes: Vec<Shape>,
    pub(crate) array: [i16; 3],
    pub(crate) map: BTreeMap<String, Vec<u32>>,
    pub(crate) wait: Duration,
    pub(crate) unit: (),
}

/// A part of other messages: it has no id.
#[derive(Clone, Debug, PartialEq, Wire, Serialize, Deserialize)]
pub(crate) enum Shape {
    Point,
    Circle(f64),
    Rect { width: u32, height: u32 },
    Group(Vec<Shape>),
}

/// Requests among messages.
#[derive(Debug, Wire)]
#[wire(id = "test.Store")]
pub(crate) enum Store {
    Put { key: String, value: Vec<u8> },
    Get { key: String, reply_to: ReplyTo<Option<Vec<u8>>> },
    Len(ReplyTo<u64>),
    Clear,
}

/// The smallest message.
#[derive(Clone, Copy, Debug, PartialEq, Wire)]
#[wire(id = "test.Unit")]
pub(crate) struct Unit;

/// A value with every kind of field.
pub(crate) fn all() -> All {
    All {
        unsigned: (200, 300, 70_000, u64::MAX, u128::MAX),
        signed: (-1, -300, 70_000, i64::MIN, i128::MIN),
        size: 5,
        floats: (1.5, -0.1),
        text: "grüße".into(),
        boxed: "b".into(),
        letter: 'ß',
        flag: true,
        maybe: Some(Box::new(Shape::Circle(2.0))),
        result: Err("no".into()),
        bytes: vec![0, 1, 255],
        shapes: vec![
            Shape::Point,
            Shape::Rect { width: 1, height: 128 },
            Shape::Group(vec![Shape::Point]),
        ],
        array: [1, -1, 0],
        map: BTreeMap::from([("a".into(), vec![1]), ("b".into(), vec![])]),
        wait: Duration::new(3, 7),
        unit: (),
    }
}
