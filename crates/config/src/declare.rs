//! Declarations: a key is written once, and read, printed and documented from that.

use toml::Value;

use crate::layer::Reader;

/// From when on a changed value counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Applies {
    /// As soon as the file is read again.
    Now,
    /// From the next start of the supervised program on.
    NextStart,
    /// From the next start of the program that reads the file on.
    Restart,
}

/// A key, as it is declared.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it does, one text a line.
    pub doc: &'static [&'static str],
    /// The variable that sets it, where that is not `SEXTON_SECTION_KEY`.
    pub env: Option<&'static str>,
    /// What to write: [`Setting::kind`](crate::Setting::kind).
    pub kind: fn() -> String,
    /// What happens where it is not set.
    pub unset: Option<&'static str>,
    /// A value to show where the default is none.
    pub example: Option<&'static str>,
    /// From when on a change counts.
    pub applies: Applies,
}

impl Key {
    /// The variable that sets it.
    pub fn env_name(&self, section: &str) -> String {
        let by_rule = || format!("SEXTON_{}_{}", section.to_uppercase(), self.name.to_uppercase());
        self.env.map_or_else(by_rule, str::to_owned)
    }
}

/// A section, as it is declared.
#[derive(Debug, Clone, Copy)]
pub struct SectionInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is about, one text a line.
    pub doc: &'static [&'static str],
    /// Its keys.
    pub keys: &'static [Key],
    /// Whether it is an array of tables, `[[name]]`. The environment sets none of its keys.
    pub list: bool,
}

/// A section: made by [`section!`](crate::section).
pub trait Section: Sized + Default {
    /// Its name.
    const NAME: &'static str;
    /// What it is about, one text a line.
    const DOC: &'static [&'static str];
    /// Its keys.
    const KEYS: &'static [Key];

    /// Reads every key.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// The values in the order of the keys; `None`: not set.
    fn write(&self) -> Vec<Option<Value>>;
}

/// A section with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// Name of the section.
    pub section: &'static str,
    /// Which one of an array of tables.
    pub index: Option<usize>,
    /// The values in the order of the keys; `None`: not set.
    pub values: Vec<Option<Value>>,
}

/// Everything one program reads of the file: made by [`document!`](crate::document).
pub trait Document: Sized + Default {
    /// Its sections.
    fn sections() -> Vec<SectionInfo>;

    /// Reads every section.
    fn read(reader: &mut Reader<'_>) -> Self;

    /// Every section with its values, in the order of [`Self::sections`].
    fn write(&self) -> Vec<Written>;
}

/// Declares a section as a plain struct.
///
/// ```
/// use std::time::Duration;
///
/// sexton_config::section! {
///     /// How often it is looked at.
///     pub struct Watch = "watch" {
///         /// Time between two looks
///         interval: Duration = Duration::from_secs(1), Now;
///         /// How much may be held
///         most: Option<sexton_model::units::Bytes> = None, Restart,
///             env "SEXTON_MOST", unset "any amount", example "\"1GiB\"";
///     }
/// }
/// assert_eq!(Watch::default().interval, Duration::from_secs(1));
/// ```
///
/// After the default: from when on a change counts ([`Applies`]); then, each if need be, the environment variable where
/// it is not `SEXTON_SECTION_KEY`, what holds where an `Option` is not set, and an example of its value in TOML.
#[macro_export]
macro_rules! section {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident = $section:literal {$(
            $(#[doc = $doc:literal])*
            $key:ident: $type:ty = $default:expr, $applies:ident
                $(, env $env:literal)? $(, unset $unset:literal)? $(, example $example:literal)?;
        )*}
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $name {$(
            $(#[doc = $doc])*
            pub $key: $type,
        )*}

        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default),* }
            }
        }

        impl $crate::Section for $name {
            const NAME: &'static str = $section;
            const DOC: &'static [&'static str] = &[$($about),*];
            const KEYS: &'static [$crate::Key] = &[$($crate::Key {
                name: stringify!($key),
                doc: &[$($doc),*],
                env: $crate::optional!($($env)?),
                kind: <$type as $crate::Setting>::kind,
                unset: $crate::optional!($($unset)?),
                example: $crate::optional!($($example)?),
                applies: $crate::Applies::$applies,
            }),*];

            fn read(reader: &mut $crate::Reader<'_>) -> Self {
                let Self { $($key),* } = Self::default();
                Self { $($key: reader.setting::<Self, $type>(stringify!($key), $key)),* }
            }

            fn write(&self) -> Vec<Option<$crate::toml::Value>> {
                vec![$($crate::Setting::write(&self.$key)),*]
            }
        }
    };
}

/// Declares everything that one program reads of the file, as a plain struct of sections and of lists of them.
#[macro_export]
macro_rules! document {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident {
            sections {$( $(#[doc = $doc:literal])* $field:ident: $section:ty, )*}
            lists {$( $(#[doc = $list_doc:literal])* $list:ident: $item:ty, )*}
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, Default)]
        $vis struct $name {
            $($(#[doc = $doc])* pub $field: $section,)*
            $($(#[doc = $list_doc])* pub $list: Vec<$item>,)*
        }

        impl $crate::Document for $name {
            fn sections() -> Vec<$crate::SectionInfo> {
                vec![
                    $($crate::section_info!($section, false),)*
                    $($crate::section_info!($item, true),)*
                ]
            }

            fn read(reader: &mut $crate::Reader<'_>) -> Self {
                Self {
                    $($field: <$section as $crate::Section>::read(reader),)*
                    $($list: reader.list::<$item>(),)*
                }
            }

            fn write(&self) -> Vec<$crate::Written> {
                let mut written = vec![$($crate::Written {
                    section: <$section as $crate::Section>::NAME,
                    index: None,
                    values: $crate::Section::write(&self.$field),
                }),*];
                $(written.extend(self.$list.iter().enumerate().map(|(index, item)| $crate::Written {
                    section: <$item as $crate::Section>::NAME,
                    index: Some(index),
                    values: $crate::Section::write(item),
                }));)*
                written
            }
        }
    };
}

/// Part of the other macros.
#[doc(hidden)]
#[macro_export]
macro_rules! optional {
    () => {
        None
    };
    ($value:literal) => {
        Some($value)
    };
}

/// Part of the other macros.
#[doc(hidden)]
#[macro_export]
macro_rules! section_info {
    ($section:ty, $list:literal) => {
        $crate::SectionInfo {
            name: <$section as $crate::Section>::NAME,
            doc: <$section as $crate::Section>::DOC,
            keys: <$section as $crate::Section>::KEYS,
            list: $list,
        }
    };
}
