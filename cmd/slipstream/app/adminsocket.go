// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"net/http"

	"k8s.io/klog/v2"

	"github.com/configbutler/slipstream/cmd/slipstream/app/options"
	"github.com/configbutler/slipstream/pkg/serving/adminsocket"
	"github.com/configbutler/slipstream/pkg/store/backup"
	"github.com/configbutler/slipstream/pkg/store/datadir"
)

// serveCommands serves commands that use the open stores until closeSocket is called, which must happen before the
// stores are closed. restart ends the server so that its supervisor starts it again. A server that cannot create the socket
// still serves its API.
func (s *stores) serveCommands(ctx context.Context, storage *options.StorageOptions, restart func()) (closeSocket func() error) {
	if s.dir == nil {
		return func() error { return nil }
	}
	logger := klog.FromContext(ctx)
	socket, err := adminsocket.Listen(ctx, s.dir.Path())
	if err != nil {
		logger.Error(err, "Failed to create the socket for commands: stop the server before a backup or a restore")
		return func() error { return nil }
	}
	socket.Handle(http.MethodGet+" "+backupPath, s.serveBackup)
	socket.Handle(http.MethodPost+" "+restorePath, s.serveRestore(storage, restart))
	socket.Handle(http.MethodPost+" "+setAsidePath, s.serveSetAside(storage))
	served := make(chan error, 1)
	go func() { served <- socket.Serve() }()
	return func() error { return errors.Join(socket.Close(), <-served) }
}

// engines returns the open stores.
func (s *stores) engines() backup.Stores { return backup.Stores{API: s.api, Work: s.work} }

// states returns the state of the open files by name.
func (s *stores) states() backup.Replaced {
	return backup.Replaced{datadir.APIFile: backup.StateOf(s.api), datadir.WorkFile: backup.StateOf(s.work)}
}
