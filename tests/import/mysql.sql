create role reader, writer; grant select on zoo.* to reader; grant reader to writer with admin option; grant writer to ann@'%'; set default role writer to ann@'%';
create user bob@'10.0.0.%' identified by 'x' require ssl with max_queries_per_hour 5 password expire interval 90 day account lock comment 'b'; create user 'no''pw'@localhost; grant backup_admin on *.* to bob@'10.0.0.%';
alter table zoo.parents add w vector(3), add inv int default 3 invisible, add key fx ((upper(name))), add key ik (inv) invisible; update zoo.parents set w = string_to_vector('[1,2.5,-3]');
create table zoo.geo (id int primary key, p point not null srid 4326, m json, key mv ((cast(m->'$.t' as unsigned array)))); insert into zoo.geo values (1, st_srid(point(10,20),4326), '{"t":[1,2]}');
create table zoo.legacy (a varchar(10) default (uuid()), b int default (1+2) check (b<>9) not enforced);
