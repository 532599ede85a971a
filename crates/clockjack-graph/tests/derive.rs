//! The code that `#[derive(Component)]` generates, used with the real traits. The tests of
//! `clockjack-macros` cover what it rejects.

use clockjack_graph::{
    Component, Config, ConfigField, ConfigKind, Data, Descriptor, Execute, Failure, GraphContext,
    Input, InputPort, Need, Output, OutputPort, Registry,
    component::Multiplicity,
    describe::{BoundaryRole, ConfigMap, ConfigValue, Span},
};

#[derive(Component, Debug, Default)]
#[component(type = "gain")]
struct Gain {
    #[input]
    x: Input<f64>,
    #[output]
    y: Output<f64>,
    #[config(default = 1.0)]
    k: f64,
}

impl Execute for Gain {
    fn execute(&mut self, cx: &mut GraphContext<'_>) -> Result<(), Failure> {
        if let Some(x) = cx.latest(self.x) {
            cx.publish(self.y, self.k * x)?;
        }
        Ok(())
    }
}

/// All attributes at once, with names that are keywords.
#[derive(Component, Debug, Default)]
#[component(type = "mixer", title = "Mixer", role = "input_output", open_config)]
struct Mixer<T: Data> {
    #[input(optional)]
    r#in: Input<T>,
    #[input(multiple)]
    many: Input<u64>,
    #[input(optional, multiple)]
    any: Input<String>,
    #[output]
    r#type: Output<Vec<f64>>,
    #[config]
    must: i64,
    #[config]
    may: Option<bool>,
    #[config(default)]
    plain: String,
    #[config(default = 5, min = 1, max = 10)]
    bounded: u32,
    #[config(min = -0.5)]
    from: f64,
    #[config(default = "sine", one_of("sine", "saw"))]
    shape: String,
    calls: u64,
}

/// Declares nothing but its type.
#[derive(Component, Debug, Default)]
#[component(type = "idle")]
struct Idle;

fn config(entries: &[(&str, ConfigValue)]) -> Config {
    let entries = entries.iter().map(|(name, value)| ((*name).into(), value.clone(), Span::NONE));
    Config::new(ConfigMap { entries: entries.collect() })
}

fn text(text: &str) -> ConfigValue {
    ConfigValue::Text(text.into())
}

/// The error of valid settings of a mixer that are overridden by these.
fn refusal(entries: &[(&str, ConfigValue)]) -> String {
    let mut all = vec![("must", ConfigValue::Int(-3)), ("from", ConfigValue::Int(0))];
    all.retain(|(name, _)| !entries.iter().any(|(other, _)| name == other));
    all.extend_from_slice(entries);
    let mut mixer = Mixer::<f64> { must: 77, ..Mixer::default() };
    let error = mixer.configure(&config(&all)).unwrap_err();
    assert_eq!(mixer.must, 77, "of settings that are refused none is taken");
    error.to_string()
}

#[test]
fn a_gain_is_described_as_if_by_hand() {
    let by_hand = Descriptor::new("gain")
        .input(InputPort::<f64>::new("x"), Need::Required)
        .output(OutputPort::<f64>::new("y"))
        .config(ConfigField::new("k", ConfigKind::Float));
    assert_eq!(Gain::describe(), by_hand);
    assert_eq!(Gain::TYPE, "gain");
    assert_eq!((Gain::X.name(), Gain::Y.name()), ("x", "y"));
    assert!(Registry::new().register::<Gain>().descriptor("gain").is_some());
}

#[test]
fn a_setting_that_is_not_given_has_its_default() {
    let mut gain = Gain::default();
    gain.configure(&config(&[])).unwrap();
    assert_eq!(gain.k, 1.0);
    gain.configure(&config(&[("k", ConfigValue::Int(3))])).unwrap();
    assert_eq!(gain.k, 3.0);
}

#[test]
fn all_marks_are_in_the_descriptor() {
    let described = Mixer::<[f64; 2]>::describe();
    assert_eq!(described.title, "Mixer");
    assert_eq!(described.role, Some(BoundaryRole::InputOutput));
    assert!(described.open_config);
    let inputs: Vec<_> = described
        .inputs
        .iter()
        .map(|port| (port.name.as_str(), port.schema.as_str(), port.need, port.multiplicity))
        .collect();
    let expected = [
        ("in", "f64[2]", Need::Optional, Multiplicity::Single),
        ("many", "u64", Need::Required, Multiplicity::Multiple),
        ("any", "text", Need::Optional, Multiplicity::Multiple),
    ];
    assert_eq!(inputs, expected);
    assert_eq!(described.outputs[0].name, "type");
    let [must, may, plain, bounded, from, shape] = &described.config[..] else { panic!() };
    assert_eq!(*must, ConfigField::new("must", ConfigKind::Int).required());
    assert_eq!(*may, ConfigField::new("may", ConfigKind::Bool));
    assert_eq!(*plain, ConfigField::new("plain", ConfigKind::Text));
    assert_eq!(*bounded, ConfigField::new("bounded", ConfigKind::Int).between(1.0, 10.0));
    assert_eq!((from.min, from.max, from.need), (Some(-0.5), None, Need::Required));
    assert_eq!(shape.choices, ["sine", "saw"]);
}

#[test]
fn all_settings_are_taken() {
    let mut mixer = Mixer::<f64> { calls: 4, ..Mixer::default() };
    let given = config(&[("must", ConfigValue::Int(-3)), ("from", ConfigValue::Float(-0.5))]);
    mixer.configure(&given).unwrap();
    assert_eq!((mixer.must, mixer.may, mixer.bounded, mixer.from), (-3, None, 5, -0.5));
    assert_eq!((mixer.plain.as_str(), mixer.shape.as_str(), mixer.calls), ("", "sine", 4));
    let given = config(&[
        ("must", ConfigValue::Int(1)),
        ("may", ConfigValue::Bool(true)),
        ("plain", text("a")),
        ("bounded", ConfigValue::Int(10)),
        ("from", ConfigValue::Int(2)),
        ("shape", text("saw")),
    ]);
    mixer.configure(&given).unwrap();
    assert_eq!((mixer.must, mixer.may, mixer.bounded, mixer.from), (1, Some(true), 10, 2.0));
    assert_eq!((mixer.plain.as_str(), mixer.shape.as_str(), mixer.calls), ("a", "saw", 4));
}

#[test]
fn a_setting_outside_its_bounds_is_refused_with_the_values() {
    assert_eq!(
        refusal(&[("bounded", ConfigValue::Int(11))]),
        "setting `bounded`: expected a number from 1 to 10, found 11"
    );
    assert_eq!(
        refusal(&[("from", ConfigValue::Float(-0.75))]),
        "setting `from`: expected a number of at least -0.5, found -0.75"
    );
    assert!(refusal(&[("from", ConfigValue::Float(f64::NAN))]).contains("found NaN"));
    assert_eq!(
        refusal(&[("shape", text("sinus"))]),
        "setting `shape`: expected one of `sine`, `saw`, found `sinus`"
    );
    assert_eq!(refusal(&[("must", ConfigValue::Null)]), "setting `must`: it is required");
    assert!(refusal(&[("may", ConfigValue::Int(1))]).contains("true or false"));
}

#[test]
fn a_struct_without_fields_is_a_component() {
    assert_eq!(Idle::describe(), Descriptor::new("idle"));
    Idle.configure(&config(&[])).unwrap();
}

/// Names at the place of use do not interfere with the generated code.
mod hygiene {
    #![no_implicit_prelude]

    struct Decoy;
    #[expect(dead_code, reason = "they are there to be met, not to be used")]
    type Result = Decoy;
    #[expect(dead_code, reason = "they are there to be met, not to be used")]
    type Option = Decoy;
    #[expect(dead_code, reason = "they are there to be met, not to be used")]
    type Descriptor = Decoy;

    #[derive(::clockjack_graph::Component)]
    #[component(type = "odd", role = "input")]
    struct Odd {
        #[input(optional)]
        config: ::clockjack_graph::Input<f64>,
        #[output]
        ports: ::clockjack_graph::Output<f64>,
        #[config(default = 2.0, min = 1.0)]
        value_0: f64,
    }

    #[test]
    fn names_at_the_place_of_use_do_not_matter() {
        let mut odd = Odd {
            config: ::core::default::Default::default(),
            ports: ::core::default::Default::default(),
            value_0: 0.0,
        };
        let empty = <::clockjack_graph::Config as ::core::default::Default>::default();
        ::clockjack_graph::Component::configure(&mut odd, &empty).unwrap();
        ::core::assert_eq!(odd.value_0, 2.0);
        ::core::assert_eq!(Odd::CONFIG.name(), "config");
        ::core::assert_eq!(Odd::PORTS.name(), "ports");
        let _ = (odd.config, odd.ports, Decoy);
    }
}

mod payloads {
    //! `#[derive(Data)]`: what it encodes comes back, and what it did not encode is refused.

    use clockjack_graph::{Blob, Data, DataError};

    #[derive(Data, Debug, PartialEq, Clone)]
    #[data(schema = "pose")]
    struct Pose {
        x: f64,
        y: f64,
        label: String,
    }

    #[derive(Data, Debug, PartialEq)]
    struct Tuple(u8, Vec<f64>, Pose);

    #[derive(Data, Debug, PartialEq)]
    struct Unit;

    #[derive(Data, Debug, PartialEq)]
    enum Command {
        Stop,
        Move { to: Pose, speed: f32 },
        Raw(Vec<u8>, bool),
    }

    fn pose() -> Pose {
        Pose { x: 1.5, y: -0.0, label: "dock".repeat(50) }
    }

    fn encoded(value: &impl Data) -> Vec<u8> {
        let mut bytes = Vec::new();
        value.encode(&mut bytes);
        bytes
    }

    fn check<T: Data + PartialEq + core::fmt::Debug>(value: &T) {
        let bytes = encoded(value);
        assert_eq!(T::decode(&bytes).as_ref(), Ok(value));
        for len in 0..bytes.len() {
            assert!(T::decode(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert!(T::decode(&longer).is_err(), "a byte too many");
    }

    #[test]
    fn a_struct_and_an_enum_come_back_and_no_part_of_their_bytes_does() {
        check(&pose());
        check(&Tuple(3, vec![1.0, 2.0], pose()));
        check(&Unit);
        check(&Command::Stop);
        check(&Command::Move { to: pose(), speed: 0.25 });
        check(&Command::Raw(vec![0; 300], true));
    }

    #[test]
    fn the_bytes_are_those_that_the_documentation_says() {
        let small = Pose { x: 1.0, y: 2.0, label: "ab".into() };
        let mut expected = vec![8];
        expected.extend(1.0_f64.to_le_bytes());
        expected.push(8);
        expected.extend(2.0_f64.to_le_bytes());
        expected.extend([2, b'a', b'b']);
        assert_eq!(encoded(&small), expected);
        assert_eq!(encoded(&Command::Raw(vec![9], false)), [2, 1, 9, 1, 0]);
        assert_eq!((Pose::SCHEMA, Tuple::SCHEMA), ("pose", "Tuple"));
    }

    #[test]
    fn an_unknown_variant_is_refused_by_name() {
        let error: DataError = Command::decode(&[3]).unwrap_err();
        assert!(error.to_string().contains("Command"), "{error}");
    }

    #[test]
    fn a_large_field_is_encoded_like_a_small_one() {
        #[derive(Data)]
        struct Image {
            width: u32,
            pixels: Blob,
        }
        let image = Image { width: 640, pixels: Blob::from(vec![5; 1 << 20]) };
        let back = Image::decode(&encoded(&image)).unwrap();
        assert_eq!((back.width, back.pixels.len()), (640, 1 << 20));
    }
}
