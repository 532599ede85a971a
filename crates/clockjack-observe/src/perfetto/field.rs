//! The numbers of the written fields and enum values, one module per message.
//!
//! They come from the public definitions, see the [parent](super); the tests declare the same
//! table a second time, for a protobuf library.

/// `Trace`.
pub(super) mod trace {
    pub(crate) const PACKET: u32 = 1;
}

/// `TracePacket`.
pub(super) mod trace_packet {
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
}

/// `TracePacket.SequenceFlags`.
pub(super) mod sequence_flags {
    pub(crate) const INCREMENTAL_STATE_CLEARED: u64 = 1;
    pub(crate) const NEEDS_INCREMENTAL_STATE: u64 = 2;
}

/// `TrackDescriptor` and its `ChildTracksOrdering`.
pub(super) mod track_descriptor {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const PARENT_UUID: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
    pub(crate) const CHILD_ORDERING: u32 = 11;
    pub(crate) const SIBLING_ORDER_RANK: u32 = 12;

    /// Children are shown by their `sibling_order_rank`.
    pub(crate) const EXPLICIT: u64 = 3;
}

/// `ProcessDescriptor`.
pub(super) mod process_descriptor {
    pub(crate) const PID: u32 = 1;
    pub(crate) const PROCESS_NAME: u32 = 6;
}

/// `CounterDescriptor` and its `Unit`.
pub(super) mod counter_descriptor {
    pub(crate) const UNIT: u32 = 3;

    pub(crate) const UNIT_COUNT: u64 = 2;
}

/// `TrackEvent`.
pub(super) mod track_event {
    pub(crate) const DEBUG_ANNOTATIONS: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const NAME_IID: u32 = 10;
    pub(crate) const TRACK_UUID: u32 = 11;
    pub(crate) const COUNTER_VALUE: u32 = 30;
    pub(crate) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(crate) const FLOW_IDS: u32 = 47;
    pub(crate) const TERMINATING_FLOW_IDS: u32 = 48;
}

/// `TrackEvent.Type`.
pub(super) mod event_type {
    pub(crate) const SLICE_BEGIN: u64 = 1;
    pub(crate) const SLICE_END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

/// `InternedData`.
pub(super) mod interned_data {
    pub(crate) const EVENT_NAMES: u32 = 2;
    pub(crate) const DEBUG_ANNOTATION_NAMES: u32 = 3;
}

/// `EventName` and `DebugAnnotationName`, which are alike.
pub(super) mod interned_name {
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
}

/// `DebugAnnotation`.
pub(super) mod debug_annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL_VALUE: u32 = 2;
    pub(crate) const UINT_VALUE: u32 = 3;
    pub(crate) const INT_VALUE: u32 = 4;
    pub(crate) const DOUBLE_VALUE: u32 = 5;
    pub(crate) const STRING_VALUE: u32 = 6;
}
