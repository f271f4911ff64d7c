// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package encryption

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	kmsapi "k8s.io/kms/apis/v2"
	"k8s.io/kms/pkg/service"

	"github.com/configbutler/slipstream/test/devcluster"
	"github.com/configbutler/slipstream/test/testkit"
)

// vault is a KMS with AES-GCM keys in memory.
type vault struct {
	mutex   sync.Mutex
	keys    map[string]cipher.AEAD
	current string
}

var _ service.Service = (*vault)(nil)

// rotate adds a key and makes it the current one.
func (v *vault) rotate(t *testing.T, name string) {
	t.Helper()
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.keys == nil {
		v.keys = map[string]cipher.AEAD{}
	}
	v.keys[name], v.current = aead, name
}

func (v *vault) Status(context.Context) (*service.StatusResponse, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return &service.StatusResponse{Version: "v2", Healthz: "ok", KeyID: v.current}, nil
}

func (v *vault) Encrypt(_ context.Context, _ string, plain []byte) (*service.EncryptResponse, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	return &service.EncryptResponse{Ciphertext: v.keys[v.current].Seal(nil, nil, plain, nil), KeyID: v.current}, nil
}

func (v *vault) Decrypt(_ context.Context, _ string, request *service.DecryptRequest) ([]byte, error) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	key, known := v.keys[request.KeyID]
	if !known {
		return nil, fmt.Errorf("no key %q", request.KeyID)
	}
	return key.Open(nil, nil, request.Ciphertext, nil)
}

// serve serves the plugin on a socket until stop is called or the test ends.
func (v *vault) serve(t *testing.T, socket string) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	kmsapi.RegisterKeyManagementServiceServer(server, service.NewGRPCService(socket, time.Second, v))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	stop = sync.OnceFunc(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// TestKMS encrypts with the keys of a plugin, which becomes unavailable, returns, and rotates its key.
func TestKMS(t *testing.T) {
	t.Parallel()
	// The path of a socket must be short.
	folder, err := os.MkdirTemp("", "kms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket, file := filepath.Join(folder, "s"), filepath.Join(folder, "kms.yaml")
	plugin := &vault{}
	plugin.rotate(t, "first")
	stop := plugin.serve(t, socket)
	write(t, file, "{kms: {apiVersion: v2, name: vault, endpoint: 'unix://"+socket+"'}}")
	s := newTestCluster(t, devcluster.Options{ServerArgs: []string{"--encryption-provider-config=" + file}})
	s.mirrorASecret(t)
	if found := leakingFiles(t, s.Env(devcluster.EnvDataDir)); len(found) != 0 {
		t.Errorf("files with the marker: %q", found)
	}

	stop()
	s.waitForReady(t, false)
	if status, body, err := s.get(t.Context(), "/livez?verbose"); err != nil || status != http.StatusOK {
		t.Errorf("livez without the plugin: %d %s (%v)", status, body, err)
	}
	s.kubectl(t, "get", "grc", "main", "-n", "shop")

	plugin.rotate(t, "second")
	plugin.serve(t, socket)
	s.waitForReady(t, true)
	s.waitForRewrite(t, "objects", "work")
	if err := s.StopServer(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	data := s.Env(devcluster.EnvDataDir)
	for store, parts := range map[string][]string{"api.db": {repositories, records}, "work.db": {outbox}} {
		stored := boltRows(t, filepath.Join(data, store))
		allEncryptedBy(t, stored, `kms "vault"`, parts...)
		for key, row := range stored {
			// Values contain the plugin's name of the key that encrypts them.
			if strings.Contains(string(row), "first") || !strings.Contains(string(row), "second") {
				t.Errorf("%s is encrypted with the plugin's old key", key)
			}
		}
	}
	if err := s.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.acceptPushes(t)
}

// waitForReady waits until readyz has the expected result of the check of KMS providers.
func (s *testCluster) waitForReady(t *testing.T, want bool) {
	t.Helper()
	status, line := http.StatusOK, "[+]kms-providers ok"
	if !want {
		status, line = http.StatusInternalServerError, "[-]kms-providers failed"
	}
	testkit.EventuallyWithin(t, deadline, "the result "+line, func(ctx context.Context) error {
		got, body, err := s.get(ctx, "/readyz?verbose")
		if err == nil && (got != status || !strings.Contains(body, line)) {
			err = fmt.Errorf("%d %s", got, body)
		}
		return err
	})
}
