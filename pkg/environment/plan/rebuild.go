// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// rebuild takes in an object that something needs and that neither the source nor the target has, as it was applied last, if it
// was. It is nil otherwise: what the source lacks stays as it is in the target, and so does what is withheld there.
func (d *draft) rebuild(key Key) *wanted {
	base := d.Base[key]
	if base == nil || d.isAsApplied() || d.live[key] != nil && d.wanted[key] == nil {
		return nil
	}
	if d.wanted[key] == nil {
		as, why := d.copies.labelled(base.DeepCopy()), "the source does not have it"
		if d.Withheld.Has(key.GroupKind) {
			why = "it is not read in the source"
		}
		d.wanted[key], d.why[key] = &wanted{desired: as, undeclared: as}, why+", and it is made again as it was"
	}
	return d.wanted[key]
}
