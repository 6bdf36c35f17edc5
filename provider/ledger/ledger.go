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

package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/synchub-dev/synchub/provider/requests"
)

const (
	// Namespace holds the ledger, in the provider workspace.
	Namespace = "synchub-ledger"
	// label marks the ConfigMaps of SyncTargets, and has the value true.
	label = "synchub.dev/synctarget"
	// entryKey is where an entry stands in its ConfigMap.
	entryKey = "entry"
	// leaderName is the ConfigMap that says when a hub led last, under ledKey, and by which Lease, under leaseKey.
	leaderName, ledKey, leaseKey = "leader", "led", "lease"
	// ledInterval is how often that is written, and silence is for how long a hub that has ended has not written it.
	ledInterval = time.Minute
	silence     = 2 * ledInterval
	// requestTimeout bounds each request.
	requestTimeout = 30 * time.Second
	// pageSize is how many entries are read at a time.
	pageSize = 500
	// attempts is how often a change is tried anew because another leader has changed the entry.
	attempts = 3
)

// ErrAnotherHub is why a hub does not work: one that stands in another hosting cluster works with the same provider workspace.
var ErrAnotherHub = errors.New("another hub works with this provider workspace")

// Options are what a ledger needs.
type Options struct {
	// Client writes to the provider workspace, and Reader reads from it without a cache.
	Client client.Client
	Reader client.Reader
	// Lease returns the UID of the Lease by which this hub leads, empty if it leads without one. Nil does the same.
	Lease func(ctx context.Context) (string, error)
	Clock clock.WithTicker
	Log   logr.Logger
}

// Ledger keeps the entries. Only the leader has one at work: it reads all entries once, and then knows them, since nobody
// else writes them.
type Ledger struct {
	Options
	loaded chan struct{}

	lock    sync.Mutex
	records map[types.UID]*record
	led     time.Time
	// leader is the version of the ConfigMap of that name, and lease what this hub writes there. Both belong to Start.
	leader, lease string
}

// record is one entry with what is needed to write it.
type record struct {
	// writing is held over the request that changes this entry.
	writing sync.Mutex
	// entry and version are guarded by the ledger's lock. The version is empty while nothing is stored.
	entry   Entry
	version string
}

// New returns a ledger, which is empty until Start has read it.
func New(options Options) *Ledger {
	return &Ledger{Options: options, loaded: make(chan struct{}), records: map[types.UID]*record{}}
}

// NeedLeaderElection makes the manager run the ledger on the leader only.
func (l *Ledger) NeedLeaderElection() bool { return true }

// Start reads all entries and then writes, until ctx ends, that a hub leads.
func (l *Ledger) Start(ctx context.Context) error {
	if err := l.load(ctx); err != nil {
		return err
	}
	close(l.loaded)
	ticker := l.Clock.NewTicker(ledInterval)
	defer ticker.Stop()
	for {
		err := l.noteLed(ctx)
		if errors.Is(err, ErrAnotherHub) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			l.Log.Info("cannot write that this hub leads; a restart will check every target anew", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (l *Ledger) load(ctx context.Context) error {
	if l.Lease != nil {
		if err := l.within(ctx, func(ctx context.Context) (err error) { l.lease, err = l.Lease(ctx); return err }); err != nil {
			return fmt.Errorf("cannot read the Lease by which this hub leads: %w", err)
		}
	}
	led, err := l.succeed(ctx)
	if err != nil {
		return err
	}
	records := map[types.UID]*record{}
	for next := ""; ; {
		var list corev1.ConfigMapList
		err := l.within(ctx, func(ctx context.Context) error {
			return l.Reader.List(ctx, &list, client.InNamespace(Namespace), client.HasLabels{label}, client.Limit(pageSize), client.Continue(next))
		})
		if err != nil {
			return unreadable(err)
		}
		for i := range list.Items {
			stored := &list.Items[i]
			entry, err := decode(stored.Data[entryKey])
			if err != nil {
				return fmt.Errorf("the ConfigMap %s/%s of the provider workspace: %w", Namespace, stored.Name, err)
			}
			records[types.UID(stored.Name)] = &record{entry: entry, version: stored.ResourceVersion}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.records, l.led = records, led
	return nil
}

func unreadable(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the hub may not read its memory in the namespace %s of the provider workspace; run `synchub init` again as its administrator: %w", Namespace, err)
	}
	return fmt.Errorf("cannot read the hub's memory in the provider workspace: %w", err)
}

// succeed returns when a hub led last, zero if that is not known, and [ErrAnotherHub] if that was another one and is at work. The
// successor by the same Lease goes on at once. Another hub's clock may be any: if by ours it wrote long ago, or will, it counts
// whether it writes while our clock waits.
func (l *Ledger) succeed(ctx context.Context) (time.Time, error) {
	led, other, err := l.readLed(ctx)
	if err != nil || other == "" {
		return led, err
	}
	if l.Clock.Since(led).Abs() < silence {
		return led, l.anotherHub(other, led)
	}
	l.Log.Info("another hub worked with this provider workspace, waiting to see whether it does", "lease", other, "led", led, "wait", silence)
	seen := l.leader
	select {
	case <-ctx.Done():
		return led, ctx.Err()
	case <-l.Clock.After(silence):
	}
	led, other, err = l.readLed(ctx)
	if err == nil && other != "" && l.leader != seen {
		err = l.anotherHub(other, led)
	}
	return led, err
}

// readLed returns when a hub led last, zero if that is not known, and by which Lease if that is another than ours.
func (l *Ledger) readLed(ctx context.Context) (led time.Time, other string, err error) {
	var leader corev1.ConfigMap
	err = l.within(ctx, func(ctx context.Context) error {
		return l.Reader.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: leaderName}, &leader)
	})
	if client.IgnoreNotFound(err) != nil {
		return time.Time{}, "", unreadable(err)
	}
	l.leader = leader.ResourceVersion
	led, err = time.Parse(time.RFC3339, leader.Data[ledKey])
	if err != nil {
		led = time.Time{}
	}
	if lease := leader.Data[leaseKey]; l.lease != "" && lease != l.lease {
		other = lease
	}
	return led, other, nil
}

func (l *Ledger) anotherHub(lease string, led time.Time) error {
	return fmt.Errorf("%w: it leads by the Lease with the UID %s, and did at %s by its clock; this one has the Lease %s. Stop one of them, or give it a provider workspace of its own. "+
		"What is left of a hub that was stopped ends after two minutes", ErrAnotherHub, lease, led.Format(time.RFC3339), l.lease)
}

// noteLed writes that this hub leads now. That another one does shows in its having written since, whenever that was by its clock.
func (l *Ledger) noteLed(ctx context.Context) error {
	for {
		leader := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: leaderName, ResourceVersion: l.leader},
			Data:       map[string]string{ledKey: l.Clock.Now().UTC().Format(time.RFC3339), leaseKey: l.lease},
		}
		err := l.within(ctx, func(ctx context.Context) error {
			if l.leader == "" {
				return l.Client.Create(ctx, leader)
			}
			return l.Client.Update(ctx, leader)
		})
		if err == nil {
			l.leader = leader.ResourceVersion
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && (l.leader == "" || !apierrors.IsNotFound(err)) {
			return err
		}
		led, other, err := l.readLed(ctx)
		if err == nil && other != "" {
			err = l.anotherHub(other, led)
		}
		if err != nil {
			return err
		}
	}
}

// Wait returns when the entries are known, or with ctx's error.
func (l *Ledger) Wait(ctx context.Context) error {
	select {
	case <-l.loaded:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Led returns when the hub before this one led last, zero if that is not known.
func (l *Ledger) Led() time.Time {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.led
}

// SyncTargets returns those of which something is remembered; known is false until that has been read.
func (l *Ledger) SyncTargets() (all []types.UID, known bool) {
	select {
	case <-l.loaded:
	default:
		return nil, false
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	return slices.Collect(maps.Keys(l.records)), true
}

// Get returns what is remembered of a SyncTarget, the zero entry if nothing is.
func (l *Ledger) Get(syncTarget types.UID) Entry {
	l.lock.Lock()
	defer l.lock.Unlock()
	if found := l.records[syncTarget]; found != nil {
		return found.entry
	}
	return Entry{}
}

// Update changes what is remembered of a SyncTarget, and returns after that has been stored. A change that changes nothing
// costs no request. It may be called more than once. What somebody has deleted in the provider workspace is not forgotten by that.
func (l *Ledger) Update(ctx context.Context, syncTarget types.UID, change func(*Entry)) error {
	changed := l.recordOf(syncTarget)
	changed.writing.Lock()
	defer changed.writing.Unlock()
	var err error
	for range attempts {
		l.lock.Lock()
		current, version := changed.entry, changed.version
		l.lock.Unlock()
		next := current.clone()
		change(&next)
		var before, after string
		before, beforeErr := current.encode()
		after, afterErr := next.encode()
		if err := errors.Join(beforeErr, afterErr); err != nil {
			return fmt.Errorf("cannot write down what the hub remembers of the SyncTarget %s: %w", syncTarget, err)
		}
		if before == after && (version != "" || after == nothing) {
			return nil
		}
		if version, err = l.store(ctx, syncTarget, after, version); err == nil {
			l.keep(changed, next, version)
			return nil
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) {
			break
		}
		// Another hub, which led before or believes that it does, was faster.
		if err := l.reread(ctx, syncTarget, changed); err != nil {
			return err
		}
	}
	return fmt.Errorf("cannot store what the hub remembers of the SyncTarget %s: %w", syncTarget, err)
}

// Forget removes what is remembered of a SyncTarget.
func (l *Ledger) Forget(ctx context.Context, syncTarget types.UID) error {
	l.lock.Lock()
	found := l.records[syncTarget]
	l.lock.Unlock()
	if found == nil {
		return nil
	}
	found.writing.Lock()
	defer found.writing.Unlock()
	stored := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget)}}
	err := l.within(ctx, func(ctx context.Context) error { return l.Client.Delete(ctx, stored) })
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cannot remove what the hub remembers of the SyncTarget %s: %w", syncTarget, err)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	delete(l.records, syncTarget)
	return nil
}

func (l *Ledger) recordOf(syncTarget types.UID) *record {
	l.lock.Lock()
	defer l.lock.Unlock()
	found := l.records[syncTarget]
	if found == nil {
		found = &record{}
		l.records[syncTarget] = found
	}
	return found
}

func (l *Ledger) keep(changed *record, entry Entry, version string) {
	l.lock.Lock()
	defer l.lock.Unlock()
	changed.entry, changed.version = entry, version
}

// store writes an entry in the place of the version given, and returns its new version.
func (l *Ledger) store(ctx context.Context, syncTarget types.UID, entry, version string) (string, error) {
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: string(syncTarget), Labels: map[string]string{label: "true"}, ResourceVersion: version},
		Data:       map[string]string{entryKey: entry},
	}
	err := l.within(ctx, func(ctx context.Context) error {
		if version == "" {
			return l.Client.Create(ctx, stored)
		}
		return l.Client.Update(ctx, stored)
	})
	return stored.ResourceVersion, err
}

func (l *Ledger) reread(ctx context.Context, syncTarget types.UID, changed *record) error {
	var stored corev1.ConfigMap
	err := l.within(ctx, func(ctx context.Context) error {
		return l.Reader.Get(ctx, types.NamespacedName{Namespace: Namespace, Name: string(syncTarget)}, &stored)
	})
	if apierrors.IsNotFound(err) {
		// Somebody has deleted it. What this hub knows is as good as it was, and is written again.
		l.Log.Info("what the hub remembers of a SyncTarget was deleted in the provider workspace; it is written again", "syncTargetUID", syncTarget)
		l.lock.Lock()
		defer l.lock.Unlock()
		changed.version = ""
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	entry, err := decode(stored.Data[entryKey])
	if err != nil {
		return err
	}
	l.keep(changed, entry, stored.ResourceVersion)
	return nil
}

func (l *Ledger) within(ctx context.Context, request func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(requests.As(ctx, requests.Background), requestTimeout)
	defer cancel()
	return request(ctx)
}
