// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/container"
)

// volumes manages the volumes of one Pod, each a folder.
type volumes struct {
	client kubernetes.Interface
	pod    *corev1.Pod
	// folder has the volumes that are removed with the Pod, claims has persistent ones, by the uids of their claims.
	folder, claims string
	// written holds the last written files by volume.
	written map[string]map[string][]byte
}

// group returns the group that owns the volumes.
func (v *volumes) group() int {
	if security := v.pod.Spec.SecurityContext; security != nil && security.FSGroup != nil {
		return int(*security.FSGroup)
	}
	return 0
}

// prepare creates all volumes. It fails while an object is missing that a volume needs.
func (v *volumes) prepare(ctx context.Context) error {
	v.written = map[string]map[string][]byte{}
	for _, volume := range v.pod.Spec.Volumes {
		if err := v.prepareOne(ctx, volume); err != nil {
			return fmt.Errorf("volume %s: %w", volume.Name, err)
		}
	}
	return nil
}

func (v *volumes) prepareOne(ctx context.Context, volume corev1.Volume) error {
	folder, err := v.path(ctx, volume)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	switch {
	case volume.EmptyDir != nil:
		return v.share(folder, 0o777)
	case volume.PersistentVolumeClaim != nil:
		return v.share(folder, 0o755)
	}
	return v.write(ctx, volume, folder)
}

// share makes a folder writable for the Pod's group.
func (v *volumes) share(folder string, mode os.FileMode) error {
	if err := os.Chown(folder, 0, v.group()); err != nil {
		return err
	}
	return os.Chmod(folder, mode|0o070|os.ModeSetgid)
}

// refresh updates the volumes whose Secrets and ConfigMaps have changed. Volumes of deleted objects stay unchanged.
func (v *volumes) refresh(ctx context.Context) error {
	var failure error
	for _, volume := range v.pod.Spec.Volumes {
		if volume.Secret == nil && volume.ConfigMap == nil {
			continue
		}
		folder, err := v.path(ctx, volume)
		if err == nil {
			err = v.write(ctx, volume, folder)
		}
		if err != nil && !apierrors.IsNotFound(err) {
			failure = errors.Join(failure, fmt.Errorf("volume %s: %w", volume.Name, err))
		}
	}
	return failure
}

// write writes the files of a volume if they have changed.
func (v *volumes) write(ctx context.Context, volume corev1.Volume, folder string) error {
	files, err := v.files(ctx, volume)
	if err != nil {
		return err
	}
	before, known := v.written[volume.Name]
	if known && maps.EqualFunc(before, files, func(a, b []byte) bool { return string(a) == string(b) }) {
		return nil
	}
	if err := writeFiles(folder, files, v.group()); err != nil {
		return err
	}
	v.written[volume.Name] = files
	return nil
}

// path returns the path of a volume on this machine.
func (v *volumes) path(ctx context.Context, volume corev1.Volume) (string, error) {
	if volume.PersistentVolumeClaim == nil {
		return filepath.Join(v.folder, volume.Name), nil
	}
	name := volume.PersistentVolumeClaim.ClaimName
	claim, err := v.client.CoreV1().PersistentVolumeClaims(v.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return "", fmt.Errorf("claim %s is not bound", name)
	}
	return filepath.Join(v.claims, string(claim.UID)), nil
}

// files returns the files of a volume that has its content from API objects.
func (v *volumes) files(ctx context.Context, volume corev1.Volume) (map[string][]byte, error) {
	switch {
	case volume.Secret != nil:
		return v.secret(ctx, volume.Secret.SecretName, volume.Secret.Optional, volume.Secret.Items)
	case volume.ConfigMap != nil:
		return v.configMap(ctx, volume.ConfigMap.Name, volume.ConfigMap.Optional, volume.ConfigMap.Items)
	case volume.Projected != nil:
		return v.projected(ctx, volume.Projected.Sources)
	}
	return nil, errors.New("unsupported kind of volume")
}

func (v *volumes) projected(ctx context.Context, sources []corev1.VolumeProjection) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, source := range sources {
		files, err := v.source(ctx, source)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, files)
	}
	return all, nil
}

func (v *volumes) source(ctx context.Context, source corev1.VolumeProjection) (map[string][]byte, error) {
	switch {
	case source.ServiceAccountToken != nil:
		return v.token(ctx, source.ServiceAccountToken)
	case source.Secret != nil:
		return v.secret(ctx, source.Secret.Name, source.Secret.Optional, source.Secret.Items)
	case source.ConfigMap != nil:
		return v.configMap(ctx, source.ConfigMap.Name, source.ConfigMap.Optional, source.ConfigMap.Items)
	case source.DownwardAPI != nil:
		files := map[string][]byte{}
		for _, item := range source.DownwardAPI.Items {
			value, err := field(v.pod, item.FieldRef.FieldPath)
			if err != nil {
				return nil, err
			}
			files[item.Path] = []byte(value)
		}
		return files, nil
	}
	return nil, errors.New("unsupported source of a projected volume")
}

// token requests a token of the Pod's account. The token outlives every test, so it is not renewed.
func (v *volumes) token(ctx context.Context, source *corev1.ServiceAccountTokenProjection) (map[string][]byte, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: source.ExpirationSeconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: v.pod.Name, UID: v.pod.UID},
	}}
	if source.Audience != "" {
		request.Spec.Audiences = []string{source.Audience}
	}
	accounts := v.client.CoreV1().ServiceAccounts(v.pod.Namespace)
	response, err := accounts.CreateToken(ctx, v.pod.Spec.ServiceAccountName, request, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return map[string][]byte{source.Path: []byte(response.Status.Token)}, nil
}

func (v *volumes) secret(ctx context.Context, name string, optional *bool, items []corev1.KeyToPath) (map[string][]byte, error) {
	secret, err := v.client.CoreV1().Secrets(v.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return choose(secret.Data, items)
}

func (v *volumes) configMap(ctx context.Context, name string, optional *bool, items []corev1.KeyToPath) (map[string][]byte, error) {
	configMap, err := v.client.CoreV1().ConfigMaps(v.pod.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) && optional != nil && *optional {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data := maps.Clone(configMap.BinaryData)
	if data == nil {
		data = map[string][]byte{}
	}
	for key, text := range configMap.Data {
		data[key] = []byte(text)
	}
	return choose(data, items)
}

// choose returns the files for the keys of an object; all of them if items is empty.
func choose(data map[string][]byte, items []corev1.KeyToPath) (map[string][]byte, error) {
	if len(items) == 0 {
		return data, nil
	}
	files := map[string][]byte{}
	for _, item := range items {
		content, found := data[item.Key]
		if !found {
			return nil, fmt.Errorf("key %s not found", item.Key)
		}
		files[item.Path] = content
	}
	return files, nil
}

// mounts returns the mounts of a container.
func (v *volumes) mounts(ctx context.Context, wanted []corev1.VolumeMount) ([]container.Mount, error) {
	folders := map[string]string{}
	for _, volume := range v.pod.Spec.Volumes {
		folder, err := v.path(ctx, volume)
		if err != nil {
			return nil, fmt.Errorf("volume %s: %w", volume.Name, err)
		}
		folders[volume.Name] = folder
	}
	var mounts []container.Mount
	for _, mount := range wanted {
		if mount.SubPathExpr != "" {
			return nil, fmt.Errorf("mount %s: subPathExpr is not supported", mount.Name)
		}
		mounts = append(mounts, container.Mount{
			HostPath: filepath.Join(folders[mount.Name], mount.SubPath), Path: mount.MountPath, ReadOnly: mount.ReadOnly,
		})
	}
	return mounts, nil
}
