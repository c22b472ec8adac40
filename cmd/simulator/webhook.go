package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kingpin/v2"
)

func webhookCommand(app *kingpin.Application, commands map[string]func() error) {
	c := app.Command("webhook", "Print the notifications that an Alertmanager sends to a webhook, one alert a line.")
	address := c.Flag("listen-address", "Address to serve on.").Default("127.0.0.1:10172").String()
	commands[c.FullCommand()] = func() error {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		return serve(ctx, *address, webhook(os.Stdout))
	}
}

// maxNotification bounds the body of a notification.
const maxNotification = 1 << 20

// webhook writes a line for each alert of a notification: its status, what it says, and
// its link.
func webhook(out io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var notification struct {
			Alerts []struct {
				Status      string
				Annotations struct{ Description, Link string }
			}
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxNotification)).Decode(&notification); err != nil {
			http.Error(w, "not a notification of Alertmanager", http.StatusBadRequest)
			return
		}
		for _, a := range notification.Alerts {
			fmt.Fprintln(out, strings.TrimSpace(fmt.Sprintf("%s: %s %s", a.Status, a.Annotations.Description, a.Annotations.Link)))
		}
	})
}
