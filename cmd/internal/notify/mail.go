package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/smtp"
	"strings"
	"time"

	"github.com/fencepost/fencepost/cmd/internal/api"
)

// Ways to protect a connection to a mail server.
const (
	StartTLS = "starttls" // required: a server that does not offer it is not used
	TLS      = "tls"      // from the first byte
	Plain    = "none"     // only to a server on this machine
)

// MailConfig is a mail server and who gets mail.
type MailConfig struct {
	Name     string
	Server   string // host:port
	Security string // StartTLS, TLS, Plain
	From     string
	To       []string
	User     string                 // empty: no log-in
	Password func() (string, error) // asked for each time
	TLS      *tls.Config            // nil: the system's authorities
}

type mailer struct{ MailConfig }

// NewMail makes a receiver that sends each message as one mail of plain text.
func NewMail(c MailConfig) Receiver { return &mailer{c} }

func (m *mailer) Name() string { return m.MailConfig.Name }

func (m *mailer) Deliver(ctx context.Context, msg Message) (err error) {
	c, err := m.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ignoreClosed(c.Close())) }()
	if m.Security == StartTLS {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return fmt.Errorf("mail server %s offers no STARTTLS", m.Server)
		}
		if err := c.StartTLS(m.tls()); err != nil {
			return fmt.Errorf("mail server %s: %w", m.Server, err)
		}
	}
	if m.User != "" {
		password, err := m.Password()
		if err != nil {
			return err
		}
		if err := c.Auth(smtp.PlainAuth("", m.User, password, m.host())); err != nil {
			return fmt.Errorf("log in to mail server %s: %w", m.Server, err)
		}
	}
	if err := m.send(c, msg); err != nil {
		return fmt.Errorf("mail server %s: %w", m.Server, err)
	}
	return c.Quit()
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (m *mailer) host() string {
	host, _, _ := strings.Cut(m.Server, ":")
	return host
}

func (m *mailer) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if m.TLS != nil {
		c = m.TLS.Clone()
	}
	c.ServerName = m.host()
	return c
}

// dial connects; the whole conversation ends with ctx.
func (m *mailer) dial(ctx context.Context) (*smtp.Client, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", m.Server)
	if err != nil {
		return nil, fmt.Errorf("reach mail server %s: %w", m.Server, err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	if m.Security == TLS {
		conn = tls.Client(conn, m.tls())
	}
	c, err := smtp.NewClient(conn, m.host())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mail server %s: %w", m.Server, err), conn.Close())
	}
	return c, nil
}

func (m *mailer) send(c *smtp.Client, msg Message) error {
	if err := c.Mail(m.From); err != nil {
		return err
	}
	for _, to := range m.To {
		if err := c.Rcpt(to); err != nil {
			return err
		}
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	text, err := m.compose(msg)
	if err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return w.Close()
}

// compose is the mail as it travels. What is in a message cannot add a header.
func (m *mailer) compose(msg Message) ([]byte, error) {
	var out bytes.Buffer
	header := func(name, value string) {
		fmt.Fprintf(&out, "%s: %s\r\n", name, strings.Map(oneLine, value))
	}
	header("From", m.From)
	header("To", strings.Join(m.To, ", "))
	header("Subject", mime.QEncoding.Encode("utf-8", strings.Map(oneLine, msg.Title)))
	header("Date", msg.At.Format(time.RFC1123Z))
	header("Message-ID", "<"+msg.ID+"@fencepost.invalid>")
	header("Auto-Submitted", "auto-generated")
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "quoted-printable")
	out.WriteString("\r\n")
	q := quotedprintable.NewWriter(&out)
	if _, err := q.Write([]byte(Text(msg))); err != nil {
		return nil, err
	}
	return out.Bytes(), q.Close()
}

func oneLine(c rune) rune {
	if c < ' ' {
		return ' '
	}
	return c
}

// Text is a message for people.
func Text(m Message) string {
	var out strings.Builder
	switch m.Kind {
	case KindClear:
		fmt.Fprintf(&out, "Over in group %s:\n", m.Group)
	case KindTest:
		fmt.Fprintf(&out, "A test of group %s: this receiver works.\n", m.Group)
	default:
		fmt.Fprintf(&out, "From group %s:\n", m.Group)
	}
	for _, a := range m.Alarms {
		fmt.Fprintf(&out, "\n* %s\n", a.Text)
		if a.Hint != "" && m.Kind == KindAlarm {
			fmt.Fprintf(&out, "  %s\n", a.Hint)
		}
		if a.Since != nil {
			fmt.Fprintf(&out, "  since %s\n", a.Since.UTC().Format(time.RFC3339))
		}
	}
	fmt.Fprintf(&out, "\n%s, message %s. `fencepost status` shows all.\n", m.At.UTC().Format(time.RFC3339), m.ID)
	return out.String()
}

// sample is a message with everything in it: for tests of templates and receivers.
func sample() Message {
	at := time.Unix(1774785600, 0).UTC()
	return Message{ID: "test-0", Kind: KindTest, Group: "test", At: at, Title: "[fencepost test] a test", Cause: "a test",
		Alarms: []api.Alarm{{Kind: "test", About: "notify", Severity: api.Warning, Text: "a test", Hint: "nothing to do", Cause: "a test", Since: &at}}}
}
