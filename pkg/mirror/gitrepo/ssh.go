// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

const sshPort = 22

// openSSH starts the service over SSH.
func (r *Remote) openSSH(ctx context.Context, service service, budget *budget) (session, error) {
	address := r.sshAddress()
	configuration, err := r.sshConfig(address)
	if err != nil {
		return nil, err
	}
	connection, err := r.dial(ctx, address)
	if err != nil {
		return nil, err
	}
	// The SSH library does not take contexts. Closing the connection ends all its calls.
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	client, err := sshHandshake(meteredConn{connection, budget.meter(connection)}, address, configuration)
	if err != nil {
		stop()
		_ = connection.Close()
		return nil, err
	}
	end := func() {
		stop()
		_ = client.Close()
	}
	stream, err := startSSH(client, sshCommand(service, r.endpoint.Path), budget, end)
	if err != nil {
		end()
		return nil, err
	}
	return stream, nil
}

// meteredConn counts all bytes read from a connection, including what the SSH library discards, such as keepalives, and
// what the command writes to its standard error.
type meteredConn struct {
	net.Conn
	metered io.Reader
}

// Read reads from the connection while the budget lasts.
func (c meteredConn) Read(buffer []byte) (int, error) { return c.metered.Read(buffer) }

func (r *Remote) sshAddress() string {
	port := r.endpoint.Port
	if port == 0 {
		port = sshPort
	}
	return net.JoinHostPort(strings.Trim(r.endpoint.Host, "[]"), strconv.Itoa(port))
}

func (r *Remote) sshConfig(address string) (*ssh.ClientConfig, error) {
	hosts, err := parseKnownHosts(r.credentials.KnownHosts, r.now)
	if err != nil {
		return nil, err
	}
	algorithms := hosts.algorithms(address)
	if len(algorithms) == 0 {
		return nil, refuse(Unauthorized, "known_hosts holds no key of %s, nor an authority for it", address)
	}
	methods, err := r.credentials.sshMethods(r.now())
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		User:              r.credentials.Username,
		Auth:              methods,
		HostKeyCallback:   hosts.check,
		HostKeyAlgorithms: algorithms,
		Timeout:           dialTimeout,
	}, nil
}

func (c Credentials) sshMethods(now time.Time) ([]ssh.AuthMethod, error) {
	var methods []ssh.AuthMethod
	if len(c.SSHPrivateKey) > maxPrivateKey {
		return nil, refuse(Invalid, "the SSH private key is larger than %s", sizeText(maxPrivateKey))
	}
	if len(c.SSHPrivateKey) > 0 {
		signer, err := c.sshSigner()
		if err != nil {
			return nil, refuse(Invalid, "the SSH private key cannot be used: %v", err)
		}
		if len(c.SSHCertificate) > 0 {
			if signer, err = certified(signer, c.SSHCertificate, now); err != nil {
				return nil, err
			}
		}
		methods = append(methods, ssh.PublicKeys(signer))
	}
	if c.Password != "" {
		methods = append(methods, ssh.Password(c.Password))
	}
	return methods, nil
}

func (c Credentials) sshSigner() (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(c.SSHPrivateKey)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) && len(c.SSHPassphrase) > 0 {
		return ssh.ParsePrivateKeyWithPassphrase(c.SSHPrivateKey, c.SSHPassphrase)
	}
	return signer, err
}

func sshHandshake(connection net.Conn, address string, configuration *ssh.ClientConfig) (*ssh.Client, error) {
	transport, channels, requests, err := ssh.NewClientConn(connection, address, configuration)
	if err == nil {
		return ssh.NewClient(transport, channels, requests), nil
	}
	if strings.Contains(err.Error(), "unable to authenticate") {
		return nil, refuse(Unauthorized, "the server refuses the credentials: %v", err)
	}
	var negotiation *ssh.AlgorithmNegotiationError
	if errors.As(err, &negotiation) && negotiation.What == "host key" {
		return nil, refuse(Unauthorized, "the server has none of the host keys and certificates that known_hosts allows: %v", err)
	}
	return nil, fmt.Errorf("open the SSH connection: %w", err)
}

// startSSH runs the command on the server.
func startSSH(client *ssh.Client, command string, budget *budget, end func()) (*streamSession, error) {
	remote, err := client.NewSession()
	if err != nil {
		return nil, fmt.Errorf("open an SSH session: %w", err)
	}
	input, err := remote.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("open an SSH session: %w", err)
	}
	output, err := remote.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("open an SSH session: %w", err)
	}
	stderr := &message{}
	remote.Stderr = stderr
	if err := remote.Start(command); err != nil {
		return nil, fmt.Errorf("run the command over SSH: %w", err)
	}
	stream := &streamSession{input: input, output: output, budget: budget, stderr: stderr}
	stream.end = func() {
		end()
		_ = remote.Wait()
	}
	return stream, nil
}

// sshCommand returns the command of the service, with the path quoted for the server's shell.
func sshCommand(service service, path string) string {
	quoted := strings.NewReplacer(`'`, `'\''`, `!`, `'\!'`).Replace(path)
	return fmt.Sprintf("%s '%s'", service, quoted)
}
