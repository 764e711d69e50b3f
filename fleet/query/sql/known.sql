-- known: the last dump of each device that was judged.
select device, boot, dump, rule from judged_devices qualify row_number() over (partition by device order by judged_at desc) = 1
