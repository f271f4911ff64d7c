// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package references

import corev1 "k8s.io/api/core/v1"

// volume adds the references of a volume.
func (f *finder) volume(source *corev1.VolumeSource, at path) {
	if ref := source.ConfigMap; ref != nil {
		f.add(ConfigMap, ref.Name, at.field("configMap"), use{keysOf(ref.Items), ref.Optional})
	}
	if ref := source.Secret; ref != nil {
		f.add(Secret, ref.SecretName, at.field("secret"), use{keysOf(ref.Items), ref.Optional})
	}
	if ref := source.PersistentVolumeClaim; ref != nil {
		f.add(PersistentVolumeClaim, ref.ClaimName, at.field("persistentVolumeClaim"), use{})
	}
	if source.Projected != nil {
		for i := range source.Projected.Sources {
			f.projection(&source.Projected.Sources[i], at.field("projected").index("sources", i))
		}
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		f.claim(&source.Ephemeral.VolumeClaimTemplate.Spec, at.field("ephemeral", "volumeClaimTemplate", "spec"))
	}
	f.credentials(source, at)
}

func (f *finder) projection(source *corev1.VolumeProjection, at path) {
	if ref := source.ConfigMap; ref != nil {
		f.add(ConfigMap, ref.Name, at.field("configMap"), use{keysOf(ref.Items), ref.Optional})
	}
	if ref := source.Secret; ref != nil {
		f.add(Secret, ref.Name, at.field("secret"), use{keysOf(ref.Items), ref.Optional})
	}
}

// keysOf returns the projected keys. No items means all keys.
func keysOf(items []corev1.KeyToPath) []string {
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key)
	}
	return keys
}

// credentials adds the Secrets with the credentials of storage drivers.
func (f *finder) credentials(source *corev1.VolumeSource, at path) {
	if source.AzureFile != nil {
		f.add(Secret, source.AzureFile.SecretName, at.field("azureFile", "secretName"), use{})
	}
	if source.CephFS != nil {
		f.local(source.CephFS.SecretRef, at.field("cephfs", "secretRef"))
	}
	if source.Cinder != nil {
		f.local(source.Cinder.SecretRef, at.field("cinder", "secretRef"))
	}
	if source.CSI != nil {
		f.local(source.CSI.NodePublishSecretRef, at.field("csi", "nodePublishSecretRef"))
	}
	if source.FlexVolume != nil {
		f.local(source.FlexVolume.SecretRef, at.field("flexVolume", "secretRef"))
	}
	if source.ISCSI != nil {
		f.local(source.ISCSI.SecretRef, at.field("iscsi", "secretRef"))
	}
	if source.RBD != nil {
		f.local(source.RBD.SecretRef, at.field("rbd", "secretRef"))
	}
	if source.ScaleIO != nil {
		f.local(source.ScaleIO.SecretRef, at.field("scaleIO", "secretRef"))
	}
	if source.StorageOS != nil {
		f.local(source.StorageOS.SecretRef, at.field("storageos", "secretRef"))
	}
}

func (f *finder) local(ref *corev1.LocalObjectReference, at path) {
	if ref != nil {
		f.add(Secret, ref.Name, at, use{})
	}
}

// claim adds the claim that a new claim is cloned from. Servers write both fields.
func (f *finder) claim(spec *corev1.PersistentVolumeClaimSpec, at path) {
	if source := spec.DataSource; source != nil && isClaim(source.APIGroup, source.Kind) {
		f.add(PersistentVolumeClaim, source.Name, at.field("dataSource"), use{})
	}
	if source := spec.DataSourceRef; source != nil && source.Namespace == nil && isClaim(source.APIGroup, source.Kind) {
		f.add(PersistentVolumeClaim, source.Name, at.field("dataSourceRef"), use{})
	}
}

func isClaim(group *string, kind string) bool {
	return (group == nil || *group == "") && kind == string(PersistentVolumeClaim)
}
