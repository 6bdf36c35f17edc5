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
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/provider/storehistory"
)

const (
	// leaderConfigMap is the ConfigMap of the leading hub. renewTimeKey is the key of the time of its last write, and
	// leaseKey and namespaceKey are the keys of its [HubIdentity].
	leaderConfigMap, renewTimeKey, leaseKey, namespaceKey = "leader", "led", "lease", "namespace"
	// renewInterval is the interval at which the leader writes that ConfigMap. A hub that has not written it for
	// otherHubTimeout has ended.
	renewInterval   = time.Minute
	otherHubTimeout = 2 * renewInterval
	// retryInterval is when a replica tries again to compare the leader with its own hub.
	retryInterval = 2 * time.Second
)

// ErrOtherHubActive is returned if a hub in another hosting cluster uses the same provider workspace.
var ErrOtherHubActive = errors.New("another hub works with this provider workspace")

// HubIdentity identifies a hub by its Lease, which its replicas share.
type HubIdentity struct {
	// Lease is the UID of the Lease.
	Lease string
	// Namespace is the UID of the namespace of the Lease; empty if the hub may not read it. A deleted Lease is created again with
	// another UID, but in the same namespace.
	Namespace string
}

// isOther reports whether the given identity belongs to another hub. A hub without a Lease treats no hub as another one.
func (h HubIdentity) isOther(other HubIdentity) bool {
	return h.Lease != "" && h.Lease != other.Lease && (h.Namespace == "" || h.Namespace != other.Namespace)
}

// checkLeader returns an error if the leader belongs to another hub.
func (h HubIdentity) checkLeader(leader leaderRecord) error {
	if leader.Lease == "" || !h.isOther(leader.HubIdentity) {
		return nil
	}
	return fmt.Errorf("%w: it leads by the Lease with the UID %s, and did at %s by its clock; this one has the Lease %s. Stop one of them, or give it its own provider workspace. "+
		"The record of a stopped hub expires after two minutes", ErrOtherHubActive, leader.Lease, leader.renewTime.Format(time.RFC3339), h.Lease)
}

// Leadership knows which replica and which hub leads. It lets only one hub work with a provider workspace.
type Leadership struct {
	options    Options
	configMaps configMaps
	// followed is closed once the entries are loaded on a replica that does not lead, and led once they are loaded on the leader.
	followed, led chan struct{}
	// leaderChanged has a value after the watch has shown another version of leaderConfigMap, or all entries. watchFailed has
	// the error that keeps the watch from showing the entries.
	leaderChanged chan struct{}
	watchFailed   chan error

	// self identifies this hub, and leaderVersion is the resourceVersion of leaderConfigMap. Only Start uses them. ledVersion is the
	// version of this hub's last write of it.
	self          HubIdentity
	leaderVersion string
	ledVersion    atomic.Uint64

	lock sync.Mutex
	// watched is true once the watch has shown all entries, and watchedLeader is the leaderConfigMap that it has shown last.
	watched           bool
	watchedLeader     leaderRecord
	previousRenewTime time.Time
}

func newLeadership(options Options, configMaps configMaps) *Leadership {
	return &Leadership{
		options: options, configMaps: configMaps, followed: make(chan struct{}), led: make(chan struct{}),
		leaderChanged: make(chan struct{}, 1), watchFailed: make(chan error, 1),
	}
}

// leads reports whether this replica has been elected.
func (l *Leadership) leads() bool { return l.options.Elected == nil || isClosed(l.options.Elected) }

// loaded returns the channel that is closed once the entries are loaded. A replica that has become the leader loads them again.
func (l *Leadership) loaded() <-chan struct{} {
	if l.leads() {
		return l.led
	}
	return l.followed
}

// IsLoaded reports whether all entries have been read.
func (l *Leadership) IsLoaded() bool { return isClosed(l.loaded()) }

// WaitForLoad waits until all entries have been read, on the leader since it leads. If ctx ends first, it returns the error of ctx.
func (l *Leadership) WaitForLoad(ctx context.Context) error {
	for !l.IsLoaded() {
		select {
		case <-l.loaded():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// isClosed reports whether a channel that carries no values is closed.
func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// PreviousRenewTime returns the last renew time of the leader before this replica led, or zero if there is none. On a replica that
// does not lead, it is the leader's when the entries were loaded.
func (l *Leadership) PreviousRenewTime() time.Time {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.previousRenewTime
}

// markLoaded closes the channels that are open yet.
func (l *Leadership) markLoaded(previousRenewTime time.Time, channels ...chan struct{}) {
	l.lock.Lock()
	l.previousRenewTime = previousRenewTime
	l.lock.Unlock()
	for _, channel := range channels {
		if !isClosed(channel) {
			close(channel)
		}
	}
}

// failWatch makes Start return an error if the entries are not loaded yet.
func (l *Leadership) failWatch(err error) {
	select {
	case l.watchFailed <- err:
	default:
	}
}

// awaitLeadership waits until this replica leads, or ctx ends. Before this replica leads, it counts the entries as loaded once the
// watch has shown all of them and a leader of this hub works with the provider workspace. A replica must not work while its
// leader still waits for the end of another hub. The error is [ErrOtherHubActive] if another hub has taken over since.
func (l *Leadership) awaitLeadership(ctx context.Context) error {
	identified, logged := false, ""
	for !l.leads() {
		failed, retry := l.watchFailed, (<-chan time.Time)(nil)
		if isClosed(l.followed) {
			failed = nil
		}
		switch err := l.compareLeader(ctx, &identified); {
		case errors.Is(err, ErrOtherHubActive):
			return err
		case err != nil:
			retry = l.options.Clock.After(retryInterval)
			if err.Error() != logged {
				logged = err.Error()
				l.options.Log.Info("cannot determine whether this hub has a leader, will retry", "error", logged)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-l.options.Elected:
		case <-l.leaderChanged:
		case <-retry:
		}
	}
	return nil
}

// compareLeader compares the leader with this hub. identified is true once this hub has its identity.
func (l *Leadership) compareLeader(ctx context.Context, identified *bool) (err error) {
	l.lock.Lock()
	leader, watched := l.watchedLeader, l.watched
	l.lock.Unlock()
	if !watched || leader.version == "" {
		return nil
	}
	if !*identified || l.self.checkLeader(leader) != nil {
		// The Lease of this hub may have changed.
		if l.self, err = l.readIdentity(ctx); err != nil {
			return err
		}
		*identified = true
	}
	if other := l.self.checkLeader(leader); other != nil {
		if isClosed(l.followed) {
			return other
		}
		return nil
	}
	if err := l.options.History.Load(ctx); err != nil {
		return fmt.Errorf("cannot read whether kcp was restored: %w", err)
	}
	if !isClosed(l.followed) {
		l.markLoaded(leader.renewTime, l.followed)
	}
	return nil
}

// onLeader notes the leaderConfigMap that the watch has shown.
func (l *Leadership) onLeader(leader leaderRecord) {
	l.lock.Lock()
	l.watchedLeader = leader
	l.lock.Unlock()
	l.wakeFollower()
}

// onAllEntries notes that the watch has shown all entries.
func (l *Leadership) onAllEntries() {
	l.lock.Lock()
	l.watched = true
	l.lock.Unlock()
	l.wakeFollower()
}

func (l *Leadership) wakeFollower() {
	select {
	case l.leaderChanged <- struct{}{}:
	default:
	}
}

// ensureFresh is [Store.EnsureFresh].
type ensureFresh func(ctx context.Context, since time.Time) error

// lead calls ensureFresh to read all entries, and then writes regularly that this hub leads, until ctx ends.
func (l *Leadership) lead(ctx context.Context, ensureFresh ensureFresh) error {
	if err := l.load(ctx, ensureFresh); err != nil {
		return err
	}
	defer l.options.History.Track(storehistory.LedgerSource, l.ledVersion.Load)()
	ticker := l.options.Clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		err := l.renewLeader(ctx)
		if errors.Is(err, ErrOtherHubActive) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			l.options.Log.Info("cannot write that this hub leads; a restart will check every target again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// load waits for the end of another hub. Then it reads all entries: the former leader may have written since the watch showed them.
func (l *Leadership) load(ctx context.Context, ensureFresh ensureFresh) (err error) {
	if l.self, err = l.readIdentity(ctx); err != nil {
		return err
	}
	renewTime, err := l.waitForPreviousHub(ctx)
	if err != nil {
		return err
	}
	l.options.History.Check(storehistory.LedgerSource, l.leaderDescription(), storehistory.ParseVersion(l.leaderVersion))
	if err := l.options.History.Load(ctx); err != nil {
		return err
	}
	if err := ensureFresh(ctx, l.options.Clock.Now()); err != nil {
		return err
	}
	l.markLoaded(renewTime, l.led, l.followed)
	return nil
}

// waitForPreviousHub returns the last renew time of the previous leader, or zero if there is none. If the previous leader was
// another hub that is still active, the error is [ErrOtherHubActive]. A previous leader with the same Lease needs no wait.
// The clocks of two hubs may differ. If the renew time is not recent by this hub's clock, waitForPreviousHub waits and checks
// whether the other hub writes.
func (l *Leadership) waitForPreviousHub(ctx context.Context) (time.Time, error) {
	leader, err := l.readLeader(ctx)
	other := l.self.checkLeader(leader)
	if err != nil || other == nil {
		return leader.renewTime, err
	}
	if l.options.Clock.Since(leader.renewTime).Abs() < otherHubTimeout {
		return leader.renewTime, other
	}
	l.options.Log.Info("another hub used this provider workspace; waiting to check whether it still runs", "lease", leader.Lease, "led", leader.renewTime, "wait", otherHubTimeout)
	observed := l.leaderVersion
	select {
	case <-ctx.Done():
		return leader.renewTime, ctx.Err()
	case <-l.options.Clock.After(otherHubTimeout):
	}
	leader, err = l.readLeader(ctx)
	if err == nil && l.leaderVersion != observed {
		err = l.self.checkLeader(leader)
	}
	return leader.renewTime, err
}

// readLeader returns the current content of leaderConfigMap.
func (l *Leadership) readLeader(ctx context.Context) (leader leaderRecord, err error) {
	stored, err := l.configMaps.get(ctx, leaderConfigMap)
	switch {
	case err == nil:
		leader = decodeLeader(stored)
	case !apierrors.IsNotFound(err):
		return leaderRecord{}, readError(err)
	}
	l.leaderVersion = leader.version
	return leader, nil
}

// leaderRecord is the content of leaderConfigMap, and its resourceVersion. It is zero if there is none.
type leaderRecord struct {
	HubIdentity
	renewTime time.Time
	version   string
}

func decodeLeader(stored *corev1.ConfigMap) leaderRecord {
	// The time is zero if the text is not valid.
	renewTime, _ := time.Parse(time.RFC3339, stored.Data[renewTimeKey])
	return leaderRecord{HubIdentity{Lease: stored.Data[leaseKey], Namespace: stored.Data[namespaceKey]}, renewTime, stored.ResourceVersion}
}

func (l *Leadership) readIdentity(ctx context.Context) (self HubIdentity, err error) {
	if l.options.Identity == nil {
		return HubIdentity{}, nil
	}
	ctx, cancel := requestContext(ctx)
	defer cancel()
	if self, err = l.options.Identity(ctx); err != nil {
		return HubIdentity{}, fmt.Errorf("cannot read this hub's Lease: %w", err)
	}
	return self, nil
}

// renewLeader writes that this hub leads now. A conflict proves that another hub has written, regardless of the clocks. The
// error is then [ErrOtherHubActive].
func (l *Leadership) renewLeader(ctx context.Context) error {
	for {
		version, err := l.configMaps.write(ctx, labelLeader, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: leaderConfigMap, ResourceVersion: l.leaderVersion},
			Data:       map[string]string{renewTimeKey: l.options.Clock.Now().UTC().Format(time.RFC3339), leaseKey: l.self.Lease, namespaceKey: l.self.Namespace},
		})
		if err == nil {
			l.leaderVersion = version
			l.ledVersion.Store(storehistory.ParseVersion(version))
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && (l.leaderVersion == "" || !apierrors.IsNotFound(err)) {
			return err
		}
		leader, err := l.readLeader(ctx)
		if err != nil {
			return err
		}
		if now := storehistory.ParseVersion(l.leaderVersion); now > 0 && now < l.ledVersion.Load() {
			l.options.History.Report(l.leaderDescription(), l.ledVersion.Load(), now)
			l.ledVersion.Store(now)
		}
		if err := l.self.checkLeader(leader); err != nil {
			return err
		}
	}
}

// leaderDescription names leaderConfigMap in messages.
func (l *Leadership) leaderDescription() string {
	return fmt.Sprintf("the ConfigMap %s/%s of the hub's ledger", Namespace, leaderConfigMap)
}
