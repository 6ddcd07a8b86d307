//! [`Extended`]: the 80-bit numbers in which Redis adds floats.
//!
//! `INCRBYFLOAT` computes in the `long double` of x86: a mantissa of 64 bits and an exponent of 15. Sums must be the
//! same to the last digit, so this is that arithmetic: reading as `strtold`, adding, writing as `%.17Lf`, all rounded
//! to the nearest number and to the even one of two.

/// Exponent of the last bit of the smallest numbers.
const EXPONENT_MIN: i32 = -16_445;
/// Exponent of the last bit of the largest numbers.
const EXPONENT_MAX: i32 = 16_320;
/// Digits after the point that are written, before zeros at the end are removed.
const DECIMALS: u32 = 17;
/// Longer texts are not numbers, as in Redis.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;
/// Decimal exponents beyond this give infinity or zero with all digits.
const DECIMAL_EXPONENT_MAX: i64 = 20_000;

/// A finite number, ±`mantissa` · 2^`exponent`.
///
/// Invariant: the first bit of the mantissa is set, unless the exponent is the smallest, which zero has as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extended {
    is_negative: bool,
    mantissa: u64,
    exponent: i32,
}

/// A number as a text gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Finite(Extended),
    Infinite,
}

impl Extended {
    pub(crate) const ZERO: Self = Self { is_negative: false, mantissa: 0, exponent: EXPONENT_MIN };

    /// The number closest to ±`bits` · 2^`exponent`; `None` if it would be infinite.
    fn round(is_negative: bool, bits: u128, exponent: i32) -> Option<Self> {
        let used = 128 - bits.leading_zeros() as i32;
        let shift = (used - 64).max(EXPONENT_MIN - exponent);
        if shift <= 0 {
            // Exact, and perhaps not yet with its first bit set.
            let up = (64 - used).min(exponent - EXPONENT_MIN);
            let (mantissa, exponent) =
                if bits == 0 { (0, EXPONENT_MIN) } else { ((bits as u64) << up, exponent - up) };
            return (exponent <= EXPONENT_MAX).then_some(Self { is_negative, mantissa, exponent });
        }
        let (kept, rest) = match shift {
            ..128 => (bits >> shift, bits << (128 - shift)),
            128 => (0, bits),
            _ => (0, u128::from(bits != 0)),
        };
        let half = 1 << 127;
        let is_up = rest > half || rest == half && kept & 1 == 1;
        let (mut mantissa, mut exponent) = (kept + u128::from(is_up), exponent + shift);
        if mantissa == 1 << 64 {
            (mantissa, exponent) = (1 << 63, exponent + 1);
        }
        if mantissa == 0 {
            exponent = EXPONENT_MIN;
        }
        (exponent <= EXPONENT_MAX).then_some(Self { is_negative, mantissa: mantissa as u64, exponent })
    }

    /// The sum; `None` if it would be infinite.
    pub(crate) fn sum(self, other: Self) -> Option<Self> {
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let distance = (high.exponent - low.exponent) as u32;
        // 62 bits more than the mantissa hold what matters; of what is cut off, only whether it is zero does.
        let up = distance.min(62);
        let down = distance - up;
        let high_bits = i128::from(high.mantissa) << up;
        let low_bits = match down {
            0 => i128::from(low.mantissa),
            1..64 => {
                let cut = low.mantissa << (64 - down) != 0;
                i128::from(low.mantissa >> down | u64::from(cut))
            }
            _ => i128::from(low.mantissa != 0),
        };
        let signed = |number: Self, bits: i128| if number.is_negative { -bits } else { bits };
        let sum = signed(high, high_bits) + signed(low, low_bits);
        // Zero is negative only if both are.
        let is_negative = if sum == 0 { self.is_negative && other.is_negative } else { sum < 0 };
        Self::round(is_negative, sum.unsigned_abs(), low.exponent + down as i32)
    }

    /// The number in decimal, without zeros at the end and without an exponent.
    pub(crate) fn text(self) -> String {
        let (integer, mut fraction) = if self.exponent >= 0 {
            let mut integer = Natural::of(self.mantissa);
            integer.shift_up(self.exponent as u32);
            (integer.text(), String::new())
        } else {
            let scaled = u128::from(self.mantissa) * 10u128.pow(DECIMALS);
            let down = self.exponent.unsigned_abs();
            let (kept, rest) = match down {
                ..128 => (scaled >> down, scaled << (128 - down)),
                128 => (0, scaled),
                _ => (0, 0),
            };
            let half = 1 << 127;
            let rounded = kept + u128::from(rest > half || rest == half && kept & 1 == 1);
            let unit = 10u128.pow(DECIMALS);
            ((rounded / unit).to_string(), format!("{:017}", rounded % unit))
        };
        fraction.truncate(fraction.trim_end_matches('0').len());
        let is_zero = fraction.is_empty() && integer == "0";
        let sign = if self.is_negative && !is_zero { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{integer}{point}{fraction}")
    }
}

impl Number {
    /// The number that is the whole of `text`: decimal or hexadecimal, or infinity by name. `None` if it is none, or
    /// one that is beyond the range.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (is_negative, digits) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if digits.eq_ignore_ascii_case(b"inf") || digits.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::Infinite);
        }
        let found = match digits {
            [b'0', b'x' | b'X', rest @ ..] => parse_hexadecimal(is_negative, rest),
            _ => parse_decimal(is_negative, digits),
        };
        found.map(Self::Finite)
    }
}

/// The digits of a number, without the point, and how far the point must move to the right.
struct Digits {
    digits: Vec<u8>,
    point: i64,
}

impl Digits {
    /// Splits `text`: digits of the base, perhaps with a point, then perhaps `mark` and an exponent, which moves the
    /// point by `step` digits' worth.
    fn parse(text: &[u8], base: u32, marks: [u8; 2], step: i64) -> Option<Self> {
        let end = text.iter().position(|byte| marks.contains(byte)).unwrap_or(text.len());
        let (number, exponent) = (&text[..end], text.get(end + 1..));
        let mut digits = Vec::with_capacity(number.len());
        let mut point = None;
        for &byte in number {
            match char::from(byte).to_digit(base) {
                Some(digit) => digits.push(digit as u8),
                None if byte == b'.' && point.is_none() => point = Some(digits.len()),
                None => return None,
            }
        }
        let behind = digits.len() - point.unwrap_or(digits.len());
        (!digits.is_empty()).then_some(())?;
        let exponent = exponent.map_or(Some(0), parse_exponent)?;
        Some(Self { digits, point: exponent - behind as i64 * step })
    }
}

/// A decimal exponent, with a sign or without, cut to what makes a difference.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    (!digits.is_empty()).then_some(())?;
    let mut exponent = 0i64;
    for byte in digits {
        let digit = char::from(*byte).to_digit(10)?;
        exponent = (exponent * 10 + i64::from(digit)).min(1 << 40);
    }
    Some(if is_negative { -exponent } else { exponent })
}

fn parse_decimal(is_negative: bool, text: &[u8]) -> Option<Extended> {
    let Digits { digits, point } = Digits::parse(text, 10, [b'e', b'E'], 1)?;
    let mut natural = Natural::of(0);
    digits.iter().for_each(|digit| natural.multiply_and_add(10, (*digit).into()));
    if natural.is_zero() {
        return Some(Extended { is_negative, ..Extended::ZERO });
    }
    if point.abs() > DECIMAL_EXPONENT_MAX {
        return None;
    }
    let (mut is_more, mut exponent) = (false, 0);
    // 10^n = 5^n · 2^n; 5^13 is the largest power that fits in 32 bits.
    let fives = point.unsigned_abs() as u32;
    let steps = std::iter::repeat_n(5u32.pow(13), (fives / 13) as usize).chain([5u32.pow(fives % 13)]);
    if point >= 0 {
        steps.for_each(|step| natural.multiply_and_add(step, 0));
        exponent += fives as i32;
    } else {
        // Enough bits in front for the quotient to have more than a mantissa: 5 < 2^2.33.
        let up = 70 + fives * 7 / 3 + 1;
        natural.shift_up(up);
        steps.for_each(|step| is_more |= natural.divide(step) != 0);
        exponent -= (fives + up) as i32;
    }
    finish(is_negative, &natural, is_more, exponent)
}

fn parse_hexadecimal(is_negative: bool, text: &[u8]) -> Option<Extended> {
    let Digits { digits, point } = Digits::parse(text, 16, [b'p', b'P'], 4)?;
    let mut natural = Natural::of(0);
    digits.iter().for_each(|digit| natural.multiply_and_add(16, (*digit).into()));
    if natural.is_zero() {
        return Some(Extended { is_negative, ..Extended::ZERO });
    }
    finish(is_negative, &natural, false, i32::try_from(point).ok()?)
}

/// The number closest to what was read; `None` if that is infinite or zero.
fn finish(is_negative: bool, natural: &Natural, is_more: bool, exponent: i32) -> Option<Extended> {
    let (top, cut, is_rest) = natural.top();
    // Beyond the range in either direction, so that the sums below are numbers.
    if !(-100_000..=100_000).contains(&exponent) {
        return None;
    }
    // What was cut off is put behind the bits, where it decides between two halves.
    let bits = top << 1 | u128::from(is_rest || is_more);
    Extended::round(is_negative, bits, exponent + cut as i32 - 1).filter(|number| number.mantissa != 0)
}

/// A natural number of any size: its words, the last one first.
struct Natural(Vec<u32>);

impl Natural {
    fn of(number: u64) -> Self {
        let mut natural = Self(vec![number as u32, (number >> 32) as u32]);
        natural.trim();
        natural
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn multiply_and_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for word in &mut self.0 {
            carry += u64::from(*word) * u64::from(factor);
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divides by `divisor` and returns the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for word in self.0.iter_mut().rev() {
            let part = rest << 32 | u64::from(*word);
            *word = (part / u64::from(divisor)) as u32;
            rest = part % u64::from(divisor);
        }
        self.trim();
        rest as u32
    }

    fn shift_up(&mut self, bits: u32) {
        if self.is_zero() {
            return;
        }
        self.multiply_and_add(1 << (bits % 32), 0);
        self.0.splice(0..0, std::iter::repeat_n(0, (bits / 32) as usize));
    }

    /// The first bits, at most 96 of them, with the number of bits behind and whether any of these is set.
    fn top(&self) -> (u128, u32, bool) {
        let from = self.0.len().saturating_sub(3);
        let top = self.0[from..].iter().rev().fold(0, |top, word| top << 32 | u128::from(*word));
        (top, 32 * from as u32, self.0[..from].iter().any(|word| *word != 0))
    }

    fn text(mut self) -> String {
        let mut parts = Vec::new();
        while !self.is_zero() {
            parts.push(self.divide(1_000_000_000));
        }
        let mut text = parts.pop().unwrap_or(0).to_string();
        parts.iter().rev().for_each(|part| text.push_str(&format!("{part:09}")));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> Option<Extended> {
        match Number::parse(text.as_bytes()) {
            Some(Number::Finite(number)) => Some(number),
            _ => None,
        }
    }

    #[test]
    fn texts_are_those_of_redis() {
        for (text, expected) in [
            ("0.1", "0.1"),
            ("-0", "0"),
            ("-1e-30", "0"),
            ("3.14159265358979323846", "3.14159265358979324"),
            ("1e-17", "0.00000000000000001"),
            ("5.1e-18", "0.00000000000000001"),
            ("4.9e-18", "0"),
            ("18446744073709551617", "18446744073709551616"),
            ("0x1.8p3", "12"),
            (".5", "0.5"),
            ("+7.", "7"),
        ] {
            assert_eq!(parsed(text).map(Extended::text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(parsed("1e4932").map(|number| number.text().len()), Some(4933));
        for text in
            ["", "-", ".", "1e", "e1", "1e5000", "1e-5000", "0x", " 1", "1 ", "1,5", "nan", "1e99999999999"]
        {
            assert_eq!(parsed(text), None, "{text}");
        }
        assert_eq!(Number::parse(b"-Infinity"), Some(Number::Infinite));
    }

    #[test]
    fn the_ends_of_the_range_are_reached() {
        let largest = parsed("1.18973149535723176502e4932").unwrap();
        assert_eq!((largest.mantissa, largest.exponent), (u64::MAX, EXPONENT_MAX));
        assert_eq!(largest.sum(largest), None);
        assert_eq!(largest.sum(parsed("1").unwrap()), Some(largest));
        let smallest = parsed("3.6e-4951").unwrap();
        assert_eq!((smallest.mantissa, smallest.exponent), (1, EXPONENT_MIN));
    }

    proptest! {
        #[test]
        fn integers_are_exact(a: i64, b: i64, shift in 0u32..64) {
            let (a, b) = (i128::from(a), i128::from(b >> shift));
            let number = |number: i128| parsed(&number.to_string()).unwrap();
            prop_assert_eq!(number(a).text(), a.to_string());
            prop_assert_eq!(number(a).sum(number(b)), Some(number(a + b)));
        }

        #[test]
        fn arbitrary_texts_never_panic(text in "[-+0-9.eExXpPaf]{0,12}", other in "-?[0-9]{1,3}e-?[0-9]{1,4}") {
            let numbers = [parsed(&text), parsed(&other)];
            if let [Some(a), Some(b)] = numbers {
                prop_assert_eq!(a.sum(b), b.sum(a));
            }
        }
    }
}
