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

// serveCommands answers commands that ask for something of the open stores, until close is called, which must be before
// the stores are closed. restart ends the server, which is to be started again. A server that cannot make the socket
// serves its API all the same.
func (s *stores) serveCommands(ctx context.Context, storage *options.StorageOptions, restart func()) (closeSocket func() error) {
	if s.dir == nil {
		return func() error { return nil }
	}
	logger := klog.FromContext(ctx)
	socket, err := adminsocket.Listen(ctx, s.dir.Path())
	if err != nil {
		logger.Error(err, "No command reaches this server: it has to be stopped for a backup and for a restore")
		return func() error { return nil }
	}
	socket.Handle(http.MethodGet+" "+backupPath, s.answerBackup)
	socket.Handle(http.MethodPost+" "+restorePath, s.answerRestore(storage, restart))
	socket.Handle(http.MethodPost+" "+setAsidePath, s.answerSetAside(storage))
	served := make(chan error, 1)
	go func() { served <- socket.Serve() }()
	return func() error { return errors.Join(socket.Close(), <-served) }
}

// engines are the open files.
func (s *stores) engines() backup.Stores { return backup.Stores{API: s.api, Work: s.work} }

// states are what the open files say about themselves, by their names.
func (s *stores) states() backup.Replaced {
	return backup.Replaced{datadir.APIFile: backup.StateOf(s.api), datadir.WorkFile: backup.StateOf(s.work)}
}
