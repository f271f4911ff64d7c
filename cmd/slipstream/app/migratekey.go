// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/client-go/rest"

	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/migrate"
)

// Messages about the remaining steps for the encryption configuration.
const (
	keyOfUser    = "Use the same encryption configuration as before: --encryption-provider-config (encryption.configSecret of the chart)."
	keyCopied    = "The encryption configuration is in %s."
	keyNotCopied = `The encryption configuration must be in %s before the start, and was not copied: %v.
Run the command again with --kubeconfig, or in a Pod with the server's ServiceAccount%s. Or copy it yourself:
  %s`
)

// keyToCluster copies the configuration of the files to the cluster, where servers on etcd read it, and returns the
// remaining step.
func (m *migrateCommand) keyToCluster(ctx context.Context, dir *datadir.Dir) (left string, err error) {
	content, err := m.readKey(ctx, encryption.Folder{Path: dir.Path()})
	if err != nil || content == nil {
		return keyOfUser, err
	}
	secret, err := newSecretHome(m.options)
	if m.outside(err) {
		command := fmt.Sprintf("kubectl -n %[1]s create secret generic %[2]s --from-file=%[3]s=%[4]s",
			m.options.Namespace, encryption.SecretName, encryption.FileName, dir.File(encryption.FileName))
		return fmt.Sprintf(keyNotCopied, "the Secret "+encryption.SecretName, err, "", command), nil
	}
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, encryptionTimeout)
	defer cancel()
	return fmt.Sprintf(keyCopied, secret), encryption.Copy(ctx, content, secret)
}

// keyToFile copies the configuration of servers on etcd to a file next to the others, and returns the remaining step.
func (m *migrateCommand) keyToFile(ctx context.Context, dir *datadir.Dir, o *migrate.Options) (left string, err error) {
	folder := encryption.Folder{Path: dir.Path()}
	secret, err := newSecretHome(m.options)
	switch {
	case m.storage.Etcd.EncryptionProviderConfigFilepath != "":
		return keyOfUser, nil
	case m.outside(err):
		command := fmt.Sprintf(`(umask 077; kubectl -n %s get secret %s -o 'jsonpath={.data.encryption\.yaml}' | base64 -d > %s)`,
			m.options.Namespace, encryption.SecretName, folder)
		return fmt.Sprintf(keyNotCopied, folder, err, " and --replace-target", command), nil
	case err != nil:
		return "", err
	}
	content, err := m.readKey(ctx, secret)
	if err != nil || content == nil {
		return keyOfUser, err
	}
	present, err := folder.Read(ctx)
	if err != nil && !errors.Is(err, encryption.ErrAbsent) {
		return "", err
	}
	if !encryption.Opens(present, content) {
		o.Beside = map[string][]byte{encryption.FileName: content}
	}
	return fmt.Sprintf(keyCopied, folder), nil
}

// readKey returns the configuration that the server generated, or nil if the user provides one.
func (m *migrateCommand) readKey(ctx context.Context, home encryption.Home) ([]byte, error) {
	if m.storage.Etcd.EncryptionProviderConfigFilepath != "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, encryptionTimeout)
	defer cancel()
	content, err := home.Read(ctx)
	if errors.Is(err, encryption.ErrAbsent) {
		return nil, nil
	}
	return content, err
}

// outside reports whether no cluster is configured and the process does not run in a Pod with an account.
func (m *migrateCommand) outside(err error) bool {
	return m.options.Recommended.CoreAPI.CoreAPIKubeconfigPath == "" &&
		(errors.Is(err, rest.ErrNotInCluster) || errors.Is(err, fs.ErrNotExist))
}
