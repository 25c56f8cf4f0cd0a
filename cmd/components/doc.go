// Package components joins autonomous components to a group, for host apps: their locks, claims and recoveries are the
// group's, and their items are kept beside its other state. Package pipeline/component knows no group, and package gms no
// components; this is the seam between them, and the daemon's own components hang on it too.
//
//	group, err := gms.New(cfg)
//	manager, err := recovery.ForGroup(group, recovery.Options{})
//	host, err := components.NewHost(components.Config{Group: group, Manager: manager})
//	err = host.AddComponent(component.Config{
//		Component: "export", Every: time.Minute,
//		Trigger: component.Trigger{Types: []string{"order"}, Future: []string{"export"}},
//		Worker:  component.Func(export),
//	}, components.Free)
//	err = errors.Join(group.Start(ctx), manager.Start(ctx), host.Start(ctx))
//	_, err = host.Items().Put(ctx, component.Item{Type: "order", ID: "4711"}, false) // on any node
//	...
//	err = host.Stop(ctx)
//	manager.Stop()
//	err = group.Stop(ctx, host.Components()...)
//
// # Duties of the host, in order
//
//  1. Add the same components on every node that is to work for them; AddComponent comes before Start.
//  2. Start group, manager and host in that order, and stop them in the reverse.
//  3. What a worker writes elsewhere carries Job.Token, and is refused there when a larger one was seen: a worker may lose
//     its claim and not know yet.
//
// # After each backup
//
// A host that is a member of a daemon's group shares its embedded ledger. Completed backups are items for it, by an index of
// package pipeline:
//
//	component.Config{
//		Index:   pipeline.BackupItems{Items: host.Items(), Ledger: host.Ledger()},
//		Trigger: component.Trigger{Types: []string{"backup"}, Past: []string{"backup"}, Future: []string{"export"}},
//		...
//	}
//
// When the daemon keeps its ledger in PostgreSQL, Config.Ledger and Config.Items are of package pipeline/ledger/postgres.
//
// # Invariants
//
//   - A dead run's claims are touched under its fence only, after it has been shut out of the ledger; they are freed, or
//     adopted as the next round trip and worked on at once (Orphans).
//   - An operator gets a claim back (Yield) when the work under it is proven to have ended, and not before.
//   - A claim of this run that nobody works on is given back after half a minute.
//   - A ledger in the group's own state takes nothing while the group keeps its ledger elsewhere, or moves it (Lineage).
package components
