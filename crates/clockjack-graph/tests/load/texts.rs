//! Texts of valid graphs.

/// The smallest valid graph.
pub(crate) const MINIMAL: &str = "\
schema_version: 1
graph:
  name: tiny
lanes:
  main:
    type: event_loop
components:
  - id: a
    type: count
    execution:
      lane: main
  - id: b
    type: print
    execution:
      lane: main
edges:
  - id: e
    kind: immediate
    from: a.out
    to: b.in
";

/// Every field, with a value other than its default.
pub(crate) const EVERYTHING: &str = r#"# A comment.
schema_version: 1
graph:
  name: everything
  kind: internal_test
  config: {emit_health_events: false}
  clock:
    runtime_domain: steady
    event_domain: device
lanes:
  fast:
    type: fixed_rate
    hz: 99.5
    period_ms: 10
    tick_budget_ms: 8
    wall_clock_enabled: true
    overrun_policy: catch_up_once
    max_threads: 4
    queue_capacity: 16
    overflow: drop_oldest
    aging_picks: 7
    max_callback_ms: 5
    thread_name: fast
    priority: -3
    cpu_affinity: [0, 2]
    nice_priority: -5
    rt_policy: fifo
    rt_priority: 50
    isolation_intent: dedicated
    on_policy_error: fail
components:
  - id: a
    type: actor:worker
    event_sources:
      - {id: in, type: message, inputs: [x, y], input: z}
      - {type: timer, period_ms: 20, phase_ms: 5}
    trigger_policy:
      type: batch
      inputs: [x]
      input: y
      batch_size: 3
      batch_window_ms: 30
      sync_slop_ms: 2
      min_interval_ms: 1
      max_latency_ms: 40
      watermark_lateness_ms: 9
      debounce_window_ms: 0
      condition: any_input_ready
      coalesce: true
    execution:
      lane: fast
      reentrant: true
      priority: high
      budget_ms: 6
      burst: 2
      on_error:
        policy: restart
        max_restarts: 4
        within_ms: 100
        backoff_ms: 10
        backoff_max_ms: 80
    depends_on: [b]
    boundary: {role: input_output, descriptor: left arm}
    config:
      gain: 0.5
      n: -2
      on: true
      name: "12"
      none:
      map: {list: [1, 2.5, 'a"b', ~], deep: {er: true}}
  - {id: b, type: t, execution: {lane: fast, on_error: isolate}}
edges:
  - id: e
    kind: async
    from: a.out
    to: b.in
    policy:
      mode: queue
      capacity: 8
      overflow: block
      lifespan_ms: 70
      deadline_ms: 60
      max_silence_ms: 80
      max_inflight: 5
      preserve_order: false
      allow_drop: false
      emit_health_events: false
      timestamp_domain: external
      copy_policy: shared_view
composite_loops:
  - id: loop
    components: [a, b]
    order: [b]
    loop_policy:
      type: solver_iteration
      max_iterations: 20
      budget_ms: 3
      convergence: stable_state
      residual_threshold: 0.001
      partial_success: fail_run
      mode: jacobi
      max_inflight: 1
      drop_policy: oldest
      min_interval_ms: 2
chains:
  - {id: whole, from: a, to: b, max_ms: 90}
subgraphs:
  - id: sub
    components:
      - {id: c, type: t, execution: {lane: fast}}
    edges: []
templates:
  - id: pair
    parameters: [n]
    components:
      - {id: d, type: t, execution: {lane: fast}, config: {n: "{{n}}"}}
    edges: []
template_instances:
  - {id: left, template: pair, parameters: {n: 3}}
"#;
