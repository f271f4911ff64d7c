// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/configbutler/slipstream/test/devcluster/balancer"
	"github.com/configbutler/slipstream/test/devcluster/gitserver"
	"github.com/configbutler/slipstream/test/devcluster/inbox"
	"github.com/configbutler/slipstream/test/devcluster/receiver"
)

// headerLimit is the timeout for reading a request's header.
const headerLimit = 10 * time.Second

// gitServerOptions are the flags of the Git server.
type gitServerOptions struct {
	root           string
	httpAddress    string
	sshAddress     string
	hostKey        string
	authorizedKeys string
}

func newGitServerCommand() *cobra.Command {
	var options gitServerOptions
	command := &cobra.Command{
		Use:    "git-server",
		Short:  "Serve Git repositories over HTTP and SSH; a push creates a missing repository",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return options.serve(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.root, "root", "", "folder of the bare repositories")
	flags.StringVar(&options.httpAddress, "http-address", "127.0.0.1:0", "host:port of the HTTP server")
	flags.StringVar(&options.sshAddress, "ssh-address", "127.0.0.1:0", "host:port of the SSH server")
	flags.StringVar(&options.hostKey, "ssh-host-key", "", "file of the SSH server's private key")
	flags.StringVar(&options.authorizedKeys, "ssh-authorized-keys", "", "file of the authorized public keys")
	mustRequire(command, "root")
	mustRequire(command, "ssh-host-key")
	return command
}

// serve serves both protocols until ctx ends.
func (o *gitServerOptions) serve(ctx context.Context) error {
	repositories, err := gitserver.NewRepositories(o.root)
	if err != nil {
		return err
	}
	hostKey, err := os.ReadFile(o.hostKey)
	if err != nil {
		return fmt.Errorf("failed to read the host key: %w", err)
	}
	sshServer, err := gitserver.NewSSH(repositories, hostKey, o.authorizedKeys)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serveGitHTTP(ctx, repositories, o.httpAddress) })
	group.Go(func() error {
		listener, err := listen(ctx, o.sshAddress)
		if err != nil {
			return err
		}
		return sshServer.Serve(ctx, listener)
	})
	return group.Wait()
}

// serveGitHTTP serves the repositories until ctx ends.
func serveGitHTTP(ctx context.Context, repositories *gitserver.Repositories, address string) error {
	handler, err := repositories.Handler()
	if err != nil {
		return err
	}
	return serveHTTP(ctx, handler, address)
}

// serveHTTP serves a handler, and /healthz, until ctx ends.
func serveHTTP(ctx context.Context, handler http.Handler, address string) error {
	routes := http.NewServeMux()
	routes.Handle("/", handler)
	routes.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	listener, err := listen(ctx, address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: routes, ReadHeaderTimeout: headerLimit}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("failed to serve HTTP: %w", err)
	}
	return nil
}

func newReceiverCommand() *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:    "receiver",
		Short:  "Print the CloudEvents that pipelines send",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return serveHTTP(command.Context(), receiver.New(command.OutOrStdout()), address)
		},
	}
	command.Flags().StringVar(&address, "address", "127.0.0.1:0", "host:port to listen on")
	return command
}

func newInboxCommand() *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use:    "inbox",
		Short:  "Keep the notifications of the demo in a folder: mails, and the messages of a webhook",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			inbox, err := inbox.New(command.Context(), folder)
			if err != nil {
				return err
			}
			return inbox.Serve(command.Context())
		},
	}
	command.Flags().StringVar(&folder, "dir", "", "the folder, which must exist")
	mustRequire(command, "dir")
	return command
}

func newBalancerCommand() *cobra.Command {
	var address string
	var servers []string
	command := &cobra.Command{
		Use:    "balancer",
		Short:  "Forward TCP connections to several servers, round robin",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			balancer, err := balancer.New(servers...)
			if err != nil {
				return err
			}
			listener, err := listen(command.Context(), address)
			if err != nil {
				return err
			}
			return balancer.Serve(command.Context(), listener)
		},
	}
	command.Flags().StringVar(&address, "address", "127.0.0.1:0", "host:port to listen on")
	command.Flags().StringSliceVar(&servers, "servers", nil, "host:port of each server")
	return command
}

// listen listens on a TCP address.
func listen(ctx context.Context, address string) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("failed to listen: %w", err)
	}
	return listener, nil
}
