//! Requests as a client writes them.

use crate::integer;

/// Appends the frame of a request (an array of bulk strings) to `out`, the command's name being the first argument.
pub fn encode<A: AsRef<[u8]>>(arguments: &[A], out: &mut Vec<u8>) {
    out.push(b'*');
    integer::write_unsigned(arguments.len() as u64, out);
    out.extend_from_slice(b"\r\n");
    for argument in arguments {
        let argument = argument.as_ref();
        out.push(b'$');
        integer::write_unsigned(argument.len() as u64, out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(argument);
        out.extend_from_slice(b"\r\n");
    }
}
