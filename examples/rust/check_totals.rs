//! A handler in Rust, with the same ABI. An order whose total is not the sum of its lines is rejected: it goes to
//! `on_failure`, with the reason. Amounts are compared exactly.
//!
//! {"name": "totals", "handler": "check_totals", "lines": "lines", "on_failure": "jsonl:wrong.jsonl"}
//!
//! A panic must not cross into C. This is built with panic=abort, so that a panic is a crash and is contained like one.

#[macro_use]
mod sluice;

use sluice::*;
use std::os::raw::c_void;
use std::ptr;

struct CheckTotals {
    host: &'static Host,
    route: *mut Route,
    lines: Span,
}

/// An amount in hundred-millionths; None for more digits than that, and for exponents.
fn amount(text: &[u8]) -> Option<i128> {
    const PLACES: usize = 8;
    let text = std::str::from_utf8(text).ok()?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > PLACES || whole.len() > 24 || fraction.starts_with(['+', '-']) {
        return None;
    }
    format!("{}{:0<width$}", whole, fraction, width = PLACES).parse().ok()
}

impl CheckTotals {
    unsafe fn number(&self, value: Value, arena: *mut Arena) -> Option<i128> {
        amount((self.host.value_text)(value, arena).bytes().filter(|_| value.kind == N)?)
    }

    /// price times quantity of one line.
    unsafe fn line(&self, line: Value, arena: *mut Arena) -> Option<i128> {
        let (mut price, mut quantity) = (None, None);
        let mut iter = (self.host.value_iter)(line);
        let mut name = Span { ptr: ptr::null(), len: 0 };
        let mut value = Value { kind: NONE, escaped: false, raw: name };
        while (self.host.value_next)(&mut iter, &mut name, &mut value) {
            match name.bytes()? {
                b"price" => price = self.number(value, arena),
                b"quantity" => {
                    let mut n = 0;
                    quantity = (self.host.value_int64)(value, &mut n).then_some(n)
                }
                _ => {}
            }
        }
        price?.checked_mul(i128::from(quantity?))
    }

    unsafe fn sum(&self, lines: Value, arena: *mut Arena) -> Option<i128> {
        let mut sum = 0i128;
        let mut iter = (self.host.value_iter)(lines);
        let mut line = lines;
        while (self.host.value_next)(&mut iter, ptr::null_mut(), &mut line) {
            sum = sum.checked_add(self.line(line, arena)?)?;
        }
        Some(sum)
    }

    unsafe fn look_at(&self, record: *const Record, arena: *mut Arena, error: &mut Error) -> Status {
        let lines = (self.host.record_attribute)(record, NEW_IMAGE, self.lines);
        let total = (self.host.record_attribute)(record, NEW_IMAGE, Span::of("total"));
        if lines.kind != L || total.kind == NONE {
            return OK; // not an order, or a removal
        }
        match (self.sum(lines, arena), self.number(total, arena)) {
            (Some(sum), Some(total)) if sum == total => OK,
            (Some(_), Some(_)) => {
                (self.host.fail)(error, REJECT, c!("WrongTotal"), c!("the total is not the sum of the lines"))
            }
            _ => (self.host.fail)(error, REJECT, c!("WrongType"), c!("the total or a line has the wrong type")),
        }
    }
}

unsafe extern "C" fn open(host: *const Host, route: *mut Route, me: *mut *mut c_void, _: *mut Error) -> Status {
    let host = &*host;
    let lines = (host.option_text)(route, c!("lines"));
    *me = Box::into_raw(Box::new(CheckTotals { host, route, lines })).cast();
    OK
}

unsafe extern "C" fn handle(me: *mut c_void, slice: *mut Slice, _: *mut Error) -> Status {
    let me = &*(me as *const CheckTotals);
    let mut wrong = 0;
    for (i, record) in (*slice).records().iter().enumerate() {
        let mut error = Error::new();
        if me.look_at(*record, (*slice).arena, &mut error) != OK {
            (me.host.mark)(slice, i, error.status, &error);
            wrong += 1;
        }
    }
    (me.host.metric)(me.route, c!("WrongTotals"), f64::from(wrong), c!("Count"));
    OK
}

unsafe extern "C" fn close(me: *mut c_void) {
    drop(Box::from_raw(me as *mut CheckTotals));
}

static OPTIONS: [OptionRow; 2] = [
    OptionRow {
        name: c!("lines"),
        kind: OPTION_TEXT,
        fallback: c!("lines"),
        help: c!("attribute that holds the list of lines, each with price and quantity"),
        ..OptionRow::END
    },
    OptionRow::END,
];

#[no_mangle]
pub static sluice_handler: Handler = Handler {
    abi: HANDLER_ABI,
    name: c!("check_totals"),
    summary: c!("rejects orders whose total is not the sum of their lines"),
    flags: 0,
    max_records: 0,
    max_bytes: 0,
    options: OPTIONS.as_ptr(),
    open: Some(open),
    handle: Some(handle),
    window: None,
    close: Some(close),
    accepts: None,
};
