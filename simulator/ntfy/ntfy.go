// Package ntfy stands in for ntfy, which makes a message of each notification that an Alertmanager
// sends.
package ntfy

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/template"
)

// The largest notification and the longest message that ntfy takes, in bytes.
const maxBody, maxMessage = 32 << 10, 4096

// Handler serves a topic: it calls receive with each message, or with the reason why ntfy refuses a
// notification.
func Handler(receive func(message string, err error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		message := ""
		if err == nil {
			message, err = Message(r.URL, body)
		}
		if err != nil {
			http.Error(w, "not a notification of Alertmanager for ntfy", http.StatusBadRequest)
		}
		receive(message, err)
	})
}

// Message returns what ntfy makes of a notification with the template in the address that it is
// sent to.
func Message(address *url.URL, notification []byte) (string, error) {
	message, err := template.New("").Parse(address.Query().Get("m")) //nolint:gosec // the Alertmanager of an operator or of a test sends it
	if err != nil {
		return "", err
	}
	var data any
	if err := json.Unmarshal(notification, &data); err != nil {
		return "", err
	}
	var text strings.Builder
	if err := message.Execute(&text, data); err != nil {
		return "", err
	}
	if text.Len() > maxMessage {
		return "", fmt.Errorf("message: has %d bytes, more than %d", text.Len(), maxMessage)
	}
	return strings.TrimSpace(text.String()), nil
}
