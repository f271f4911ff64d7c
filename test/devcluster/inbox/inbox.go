// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inbox receives the notifications of the demo, as mail and through a webhook, and keeps them in a folder.
package inbox

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/test/devcluster/mailcatcher"
	"github.com/configbutler/slipstream/test/devcluster/pki"
)

const (
	// loopback is the address of both servers.
	loopback = "127.0.0.1"
	// username is that of the account of the mail server.
	username = "slipstream"
	// headerLimit is the timeout for reading a request's header.
	headerLimit = 10 * time.Second
)

// The files in the folder. mails has two files for each mail, which are numbered: N.eml, and N.txt as a recipient reads it.
const (
	envFile    = "env"
	mailFolder = "mails"
	webhookLog = "webhook.log"
)

// Inbox is the two servers. It must be made by New.
type Inbox struct {
	mail, web net.Listener
	catcher   *mailcatcher.Catcher
	server    *http.Server
	log       *os.File
	// secrets are the variables of the credentials.
	secrets [][2]string
}

// New returns an Inbox that listens on loopback. The file env in the folder has the addresses and credentials as variables of a shell.
// Serve must be called.
func New(ctx context.Context, folder string) (*Inbox, error) {
	i := &Inbox{}
	if err := errors.Join(i.makeCatcher(folder), i.makeServer(folder)); err != nil {
		return nil, err
	}
	if err := errors.Join(i.listen(ctx), i.writeEnv(filepath.Join(folder, envFile))); err != nil {
		return nil, err
	}
	return i, nil
}

// makeCatcher makes the mail server, with a certificate of an authority of its own.
func (i *Inbox) makeCatcher(folder string) error {
	mails, err := newMails(filepath.Join(folder, mailFolder))
	if err != nil {
		return err
	}
	certificate, bundle, err := newCertificate()
	if err != nil {
		return err
	}
	password := rand.Text()
	i.secrets = append(i.secrets, [2]string{"MAIL_USERNAME", username}, [2]string{"MAIL_PASSWORD", password},
		[2]string{"MAIL_CA_BUNDLE", base64.StdEncoding.EncodeToString(bundle)})
	i.catcher = mailcatcher.New(io.Discard, mailcatcher.Options{
		TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}, Username: username, Password: password,
		Accept: mails.keep,
	})
	return nil
}

// makeServer makes the server of the webhook, with a new secret.
func (i *Inbox) makeServer(folder string) (err error) {
	i.log, err = os.OpenFile(filepath.Join(folder, webhookLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of the webhook: %w", err)
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte(rand.Text()))
	i.secrets = append(i.secrets, [2]string{"WEBHOOK_SECRET", secret})
	hook, err := newWebhook(secret, i.log)
	i.server = &http.Server{Handler: hook, ReadHeaderTimeout: headerLimit}
	return err
}

func (i *Inbox) listen(ctx context.Context) (err error) {
	var config net.ListenConfig
	if i.mail, err = config.Listen(ctx, "tcp", net.JoinHostPort(loopback, "0")); err != nil {
		return fmt.Errorf("listen for mail: %w", err)
	}
	if i.web, err = config.Listen(ctx, "tcp", net.JoinHostPort(loopback, "0")); err != nil {
		return errors.Join(fmt.Errorf("listen for the webhook: %w", err), i.mail.Close())
	}
	return nil
}

// Serve serves both servers until ctx ends.
func (i *Inbox) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return i.catcher.Serve(i.mail) })
	group.Go(func() error {
		if err := i.server.Serve(i.web); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve the webhook: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(i.catcher.Close(), i.server.Close())
	})
	return errors.Join(group.Wait(), i.log.Close())
}

// writeEnv writes the variables, whose values need no quotes. The file is complete once it exists.
func (i *Inbox) writeEnv(path string) error {
	host, port, err := net.SplitHostPort(i.mail.Addr().String())
	if err != nil {
		return err
	}
	addresses := [][2]string{{"MAIL_HOST", host}, {"MAIL_PORT", port}, {"WEBHOOK_URL", "http://" + i.web.Addr().String()}}
	var lines strings.Builder
	for _, variable := range append(addresses, i.secrets...) {
		lines.WriteString(variable[0] + "=" + variable[1] + "\n")
	}
	if err := os.WriteFile(path+".new", []byte(lines.String()), 0o600); err != nil {
		return fmt.Errorf("write the addresses: %w", err)
	}
	return os.Rename(path+".new", path)
}

// newCertificate returns a certificate for the mail server, and the authority that has signed it, as PEM.
func newCertificate() (certificate tls.Certificate, bundle []byte, err error) {
	authority, err := pki.NewAuthority("mail-ca")
	if err != nil {
		return certificate, nil, err
	}
	pair, err := authority.Server("mail", loopback)
	if err != nil {
		return certificate, nil, err
	}
	certificate, err = tls.X509KeyPair(pair.Certificate, pair.Key)
	return certificate, authority.Certificate, err
}

// mails keeps mails in a folder, after those of an earlier Inbox.
type mails struct {
	folder string
	count  int
}

func newMails(folder string) (*mails, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("create the folder of the mails: %w", err)
	}
	earlier, err := filepath.Glob(filepath.Join(folder, "*.eml"))
	return &mails{folder: folder, count: len(earlier)}, err
}

// keep writes a mail. It is called for one mail at a time.
func (m *mails) keep(mail mailcatcher.Mail) error {
	m.count++
	path := filepath.Join(m.folder, strconv.Itoa(m.count))
	return errors.Join(os.WriteFile(path+".eml", mail.Content, 0o600), os.WriteFile(path+".txt", []byte(mail.String()), 0o600))
}
