/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package relation_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/sync/relation"
)

// newRelation is about secrets in the mailbox.
func newRelation(identifier string) *relation.Relation {
	return &relation.Relation{Identifier: identifier, Origin: inMailbox, OnTarget: secrets, InMailbox: secrets}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// named wants objects in the primary's namespace.
func named(namespace string, names ...string) relation.Wanted {
	wanted := relation.Wanted{Home: namespace}
	for _, name := range names {
		wanted.Names = append(wanted.Names, key(namespace, name))
	}
	return wanted
}

// told is a register about secrets in the mailbox, and what it announced.
type told struct {
	*relation.Register
	t         *testing.T
	announced []relation.Change
}

func newTold(t *testing.T) *told {
	register := &told{Register: relation.NewRegister(), t: t}
	register.Subscribe(inMailbox, secrets.GroupResource(), func(change relation.Change) { register.announced = append(register.announced, change) })
	return register
}

// heard returns what was announced since it was called last.
func (r *told) heard() []relation.Change {
	heard := r.announced
	r.announced = nil
	return heard
}

func (r *told) expect(candidate relation.Candidate, want string) {
	r.t.Helper()
	found, ok := r.Find(inMailbox, secrets.GroupResource(), candidate)
	var got string
	switch {
	case ok:
		got = fmt.Sprintf("%s %s", found.Relation.Identifier, found.Primary)
	case r.Unrelated(inMailbox, secrets.GroupResource(), candidate):
		got = "unrelated"
	default:
		got = "unknown"
	}
	if got != want {
		r.t.Errorf("%s is %s, want %s", describe(candidate), got, want)
	}
}

func (r *told) expectHeard(want ...relation.Change) {
	r.t.Helper()
	if heard := r.heard(); !slices.EqualFunc(heard, want, func(a, b relation.Change) bool { return reflect.DeepEqual(a, b) }) {
		r.t.Errorf("announced is %+v, want %+v", heard, want)
	}
}

var (
	password = relation.Candidate{Key: key("a", "password")}
	app      = key("a", "app")
	database = key("a", "database")
	// all is announced where absence means something again.
	all = relation.Change{All: true}
)

func names(names ...types.NamespacedName) relation.Change { return relation.Change{Names: names} }
