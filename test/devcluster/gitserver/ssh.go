// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
	"k8s.io/klog/v2"
)

// The services of Git that a client may request.
const (
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// SSH serves the repositories over SSH.
type SSH struct {
	repositories *Repositories
	config       *ssh.ServerConfig
}

// NewSSH returns a server with the given host key (PEM) that accepts every user with
// one of the keys in the file authorizedKeys, which is read for each
// connection.
func NewSSH(repositories *Repositories, hostKey []byte, authorizedKeys string) (*SSH, error) {
	signer, err := ssh.ParsePrivateKey(hostKey)
	if err != nil {
		return nil, fmt.Errorf("failed to read the host key: %w", err)
	}
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			return nil, authorize(authorizedKeys, key)
		},
	}
	config.AddHostKey(signer)
	return &SSH{repositories: repositories, config: config}, nil
}

// Serve serves connections until ctx ends, then closes those that are open, and
// returns when all are done. It closes the listener.
func (s *SSH) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("failed to accept an SSH connection: %w", err)
		}
		connections.Go(func() {
			if err := s.serveConnection(ctx, connection); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Info("SSH connection failed", "client", connection.RemoteAddr(), "err", err)
			}
		})
	}
}

// serveConnection serves one connection.
func (s *SSH) serveConnection(ctx context.Context, connection net.Conn) error {
	defer func() { _ = connection.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	_, channels, requests, err := ssh.NewServerConn(connection, s.config)
	if err != nil {
		return fmt.Errorf("handshake with the client failed: %w", err)
	}
	var sessions sync.WaitGroup
	defer sessions.Wait()
	sessions.Go(func() { ssh.DiscardRequests(requests) })
	for opened := range channels {
		if opened.ChannelType() != "session" {
			if err := opened.Reject(ssh.UnknownChannelType, "only sessions are served"); err != nil {
				return fmt.Errorf("failed to reject a channel: %w", err)
			}
			continue
		}
		channel, sessionRequests, err := opened.Accept()
		if err != nil {
			return fmt.Errorf("failed to accept a session: %w", err)
		}
		sessions.Go(func() { s.session(ctx, channel, sessionRequests) })
	}
	return nil
}

// session runs the one command of a session.
func (s *SSH) session(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request) {
	defer func() { _ = channel.Close() }()
	protocol := ""
	for request := range requests {
		switch request.Type {
		case "env":
			var variable struct{ Name, Value string }
			err := ssh.Unmarshal(request.Payload, &variable)
			if err == nil && variable.Name == "GIT_PROTOCOL" {
				protocol = variable.Value
			}
			reply(request, err == nil)
		case "exec":
			var command struct{ Line string }
			err := ssh.Unmarshal(request.Payload, &command)
			reply(request, err == nil)
			go ssh.DiscardRequests(requests)
			s.execute(ctx, channel, command.Line, protocol)
			return
		default:
			reply(request, false)
		}
	}
}

// execute runs a Git service on the channel and sends its exit status.
func (s *SSH) execute(ctx context.Context, channel ssh.Channel, line, protocol string) {
	status := uint32(0)
	if err := s.serveGit(ctx, channel, line, protocol); err != nil {
		status = 128
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			_, _ = fmt.Fprintln(channel.Stderr(), err)
		}
	}
	// The client may have disconnected.
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
}

// serveGit runs the service of the command line on its repository.
func (s *SSH) serveGit(ctx context.Context, channel ssh.Channel, line, protocol string) error {
	service, quoted, _ := strings.Cut(line, " ")
	if service != uploadPack && service != receivePack {
		return fmt.Errorf("%q is not served", service)
	}
	name := strings.TrimPrefix(strings.Trim(quoted, "'"), "/")
	folder, err := s.repositories.folder(name)
	if err != nil {
		return err
	}
	if service == receivePack {
		if err := s.repositories.Ensure(ctx, name); err != nil {
			return err
		}
	}
	command := exec.CommandContext(ctx, "git", strings.TrimPrefix(service, "git-"), folder)
	command.Env = append(os.Environ(), "GIT_PROTOCOL="+protocol)
	return runOnChannel(command, channel)
}

// runOnChannel runs the command with the channel as its input and output. With the
// channel as the input of exec, Wait would wait for the client's end of input,
// which a client that disconnects first never sends.
func runOnChannel(command *exec.Cmd, channel ssh.Channel) error {
	input, err := command.StdinPipe()
	if err != nil {
		return fmt.Errorf("failed to open the service's input: %w", err)
	}
	command.Stdout, command.Stderr = channel, channel.Stderr()
	if err := command.Start(); err != nil {
		return fmt.Errorf("failed to start the service: %w", err)
	}
	go func() {
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	}()
	return command.Wait()
}

// reply replies to a request that wants a reply, and ignores that the client may have disconnected.
func reply(request *ssh.Request, ok bool) {
	if request.WantReply {
		_ = request.Reply(ok, nil)
	}
}

// authorize returns an error unless the key is in the file.
func authorize(file string, key ssh.PublicKey) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("failed to read the authorized keys: %w", err)
	}
	for len(content) > 0 {
		authorized, _, _, rest, err := ssh.ParseAuthorizedKey(content)
		if err != nil {
			break
		}
		if bytes.Equal(authorized.Marshal(), key.Marshal()) {
			return nil
		}
		content = rest
	}
	return errors.New("the key is not authorized")
}
