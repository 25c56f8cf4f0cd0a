// Package settings keeps what belongs to the whole group: servers, databases, storages, schedules, retention, bindings of roles,
// what takes a second person, who is told of what; and which databases were found on the servers. They lie in the group's own
// store, so that every node knows the same ones.
//
//	keeper := settings.New(settings.Config{Store: store, Taken: namesOfFiles, Busy: usedByTasks})
//	done, err := keeper.Apply(ctx, api.ApplySettings{Settings: wanted, Prune: true})
//	...
//	now := settings.Read(records)                    // on each node, of what it knows of the store
//	cfg, problems := file.With(now.Settings.Expand(now.Found))
//
// What holds:
//
//   - Apply changes all that was asked for or nothing, and only when the result makes sense as a whole: what names something
//     names something that is there. Applying the same twice changes nothing the second time.
//   - Nothing here touches backups. A server that is removed takes along what is known of its databases, not their backups;
//     a database that is gone from its server (Found.Gone) stays known until a person has it forgotten.
//   - A name is in one place: what a node's file has is refused, with that node's name. Where both have it all the same, since
//     the file was changed later, the file counts on its node.
//   - What a task is at work with is not removed (code busy), so that a recovery finds it.
//   - What came with a later protocol than the group writes is refused until that is agreed on (Config.Writes): a node of the
//     version before, which may be at work beside this one, would pass over it.
//   - Records of a later version that this one does not understand are left alone and told of; the others count.
package settings
