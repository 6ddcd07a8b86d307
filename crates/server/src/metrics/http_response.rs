//! [`Response`]: an HTTP answer.

use super::http_request::Status;

/// An answer before it is bytes.
#[derive(Debug)]
pub(super) struct Response {
    pub status: Status,
    pub content_type: &'static str,
    pub body: String,
}

impl Response {
    /// An answer that says no more than its status.
    pub fn of_status(status: Status) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: format!("{}\n", status.line()) }
    }

    /// The bytes. The page may load nothing from elsewhere and may not be framed.
    pub fn encode(&self, stays: bool) -> Vec<u8> {
        let (line, content_type, bytes) = (self.status.line(), self.content_type, self.body.len());
        let connection = if stays { "keep-alive" } else { "close" };
        let allow = if self.status == Status::MethodNotAllowed { "Allow: GET\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 {line}\r\nContent-Type: {content_type}\r\nContent-Length: {bytes}\r\nConnection: \
             {connection}\r\n{allow}Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
             connect-src 'self'; img-src data:; frame-ancestors 'none'\r\n\r\n"
        );
        [head.as_bytes(), self.body.as_bytes()].concat()
    }
}
