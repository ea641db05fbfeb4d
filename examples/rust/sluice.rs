//! The parts of <sluice/handler.h> that a handler in Rust needs. Copy this file beside your own, and add what you use.
//!
//! The header is the manual; this file has the layout only. Functions of the host table that are not used here are
//! opaque slots in their places; the table only grows at its end. `layout.rs` prints the offset of each field, and
//! Sluice's tests compare the offsets with the C compiler's.
#![allow(dead_code)]

use std::os::raw::{c_char, c_void};
use std::{ptr, slice};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Abi {
    pub major: u16,
    pub minor: u16,
    pub size: u32,
}

/// Bytes that somebody else owns.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Span {
    pub ptr: *const u8,
    pub len: usize,
}

impl Span {
    pub const fn of(text: &'static str) -> Span {
        Span { ptr: text.as_ptr(), len: text.len() }
    }

    /// None when absent. The bytes live as long as their owner: a record's, until handle() returns.
    pub unsafe fn bytes<'a>(self) -> Option<&'a [u8]> {
        if self.ptr.is_null() {
            None
        } else {
            Some(slice::from_raw_parts(self.ptr, self.len))
        }
    }
}

pub type Status = u32;
pub const OK: Status = 0;
pub const RETRY: Status = 1;
pub const REJECT: Status = 2;
pub const FATAL: Status = 3;

#[repr(C)]
pub struct Error {
    pub status: Status,
    pub offset: usize,
    pub code: [c_char; 64],
    pub text: [c_char; 512],
}

impl Error {
    pub fn new() -> Error {
        Error { status: OK, offset: usize::MAX, code: [0; 64], text: [0; 512] }
    }
}

pub const OLD_IMAGE: u32 = 2;
pub const NEW_IMAGE: u32 = 1;

pub const NONE: u32 = 0;
pub const N: u32 = 2;
pub const L: u32 = 9;
pub const M: u32 = 10;

/// A view of one attribute value, passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    pub kind: u32,
    pub escaped: bool,
    pub raw: Span,
}

#[repr(C)]
pub struct Iter {
    at: *const u8,
    end: *const u8,
    kind: u32,
}

pub enum Record {}
pub enum Route {}
pub enum Arena {}

#[repr(C)]
pub struct Slice {
    pub abi: Abi,
    pub records: *const *const Record,
    pub n: usize,
    pub deadline_ms: i64,
    pub arena: *mut Arena,
    pub request_id: *const c_char,
    pub attempt: u32,
}

impl Slice {
    pub unsafe fn records<'a>(&self) -> &'a [*const Record] {
        if self.n == 0 {
            &[]
        } else {
            slice::from_raw_parts(self.records, self.n)
        }
    }
}

pub const OPTION_END: u32 = 0;
pub const OPTION_TEXT: u32 = 1;

#[repr(C)]
pub struct OptionRow {
    pub name: *const c_char,
    pub kind: u32,
    pub flags: u32,
    pub min: i64,
    pub max: i64,
    pub values: *const c_char,
    pub fallback: *const c_char,
    pub help: *const c_char,
}

impl OptionRow {
    pub const END: OptionRow = OptionRow {
        name: ptr::null(),
        kind: OPTION_END,
        flags: 0,
        min: 0,
        max: 0,
        values: ptr::null(),
        fallback: ptr::null(),
        help: ptr::null(),
    };
}

type Slot = *const c_void; // a function that is not used here

#[repr(C)]
pub struct Host {
    pub abi: Abi,
    pub mark: unsafe extern "C" fn(*mut Slice, usize, Status, *const Error),
    _mark_result: Slot,
    pub fail: unsafe extern "C" fn(*mut Error, Status, *const c_char, *const c_char, ...) -> Status,
    pub alloc: unsafe extern "C" fn(*mut Arena, usize) -> *mut c_void,
    pub route_arena: unsafe extern "C" fn(*mut Route) -> *mut Arena,
    _now_ms_to_sleep: [Slot; 4],
    pub log: unsafe extern "C" fn(*mut Route, u32, *const c_char, ...),
    _log_enabled: Slot,
    pub metric: unsafe extern "C" fn(*mut Route, *const c_char, f64, *const c_char),
    _route_name_and_events: [Slot; 2],
    pub option_text: unsafe extern "C" fn(*mut Route, *const c_char) -> Span,
    _option_integer_to_record_image: [Slot; 16],
    pub record_attribute: unsafe extern "C" fn(*const Record, u32, Span) -> Value,
    _record_path_to_record_to_json: [Slot; 5],
    pub value_text: unsafe extern "C" fn(Value, *mut Arena) -> Span,
    _value_bytes: Slot,
    pub value_int64: unsafe extern "C" fn(Value, *mut i64) -> bool,
    _value_is_true_and_member: [Slot; 2],
    pub value_iter: unsafe extern "C" fn(Value) -> Iter,
    pub value_next: unsafe extern "C" fn(*mut Iter, *mut Span, *mut Value) -> bool,
    // More follow, also those that later versions appended.
}

#[repr(C)]
pub struct Handler {
    pub abi: Abi,
    pub name: *const c_char,
    pub summary: *const c_char,
    pub flags: u32,
    pub max_records: usize,
    pub max_bytes: usize,
    pub options: *const OptionRow,
    pub open: Option<unsafe extern "C" fn(*const Host, *mut Route, *mut *mut c_void, *mut Error) -> Status>,
    pub handle: Option<unsafe extern "C" fn(*mut c_void, *mut Slice, *mut Error) -> Status>,
    pub window: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, *mut Error) -> Status>,
    pub close: Option<unsafe extern "C" fn(*mut c_void)>,
    pub accepts: Option<unsafe extern "C" fn(*mut c_void, u32, *mut Error) -> Status>,
}

/// It uses nothing newer than version 1.0, so it loads in every host of major 1.
pub const HANDLER_ABI: Abi = Abi { major: 1, minor: 0, size: std::mem::size_of::<Handler>() as u32 };

// Tables of constants: the host only reads them.
unsafe impl Sync for Handler {}
unsafe impl Sync for OptionRow {}

/// A text constant for C.
#[macro_export]
macro_rules! c {
    ($text:expr) => {
        concat!($text, "\0").as_ptr() as *const std::os::raw::c_char
    };
}
