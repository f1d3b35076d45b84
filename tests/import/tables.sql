create database zoo character set latin1 collate latin1_german2_ci; create database `odd-näme`; create database farm;
use zoo;
create table kinds (id int unsigned auto_increment primary key, t1 tinyint, t2 smallint unsigned, t3 mediumint, t4 bigint unsigned, bo boolean, de decimal(65,30), fl float, dbl double, dm double(10,3), bi bit(13), b64 bit(64),
 c char(10) character set utf8mb4, v varchar(200), v2 varchar(40) character set gbk, u16 varchar(40) character set utf16, sj varchar(20) character set sjis, bn binary(6), vb varbinary(60), tt tinytext, mt mediumtext character set utf8mb4, lt longtext, tb tinyblob, lb longblob,
 en enum('a','b''c','ü'), se set('x','y','z'), ye year, da date, ti time(6), dt datetime(3), ts timestamp(2) null, j json, g geometry, p point not null, unique key u (t2, v(10)), key k (v2), fulltext key ft (mt)) engine=InnoDB auto_increment=77 comment='all it''s kinds';
insert into kinds (t1,t2,t3,t4,bo,de,fl,dbl,dm,bi,b64,c,v,v2,u16,sj,bn,vb,tt,mt,lt,tb,lb,en,se,ye,da,ti,dt,ts,j,g,p) values
 (-128,1,-8388608,18446744073709551615,1,-12345678901234567890.0123456789,-1.1,2.2250738585072014e-308,1.5,b'1010101010101',0xffffffffffffffff,'Zoë 💩','größe\\\'"','中文',_utf8mb4'ü中','表',x'00ff01',x'00272201005c','tiny','mä💩','long ß',x'00',repeat(x'005c2761',30000),'ü','x,z',1901,'1000-01-01','-838:59:59.000000','9999-12-31 23:59:59.999','2020-02-29 12:00:00.25','{"a":[1,2.50,"x",null],"ä":{"b":1e100}}',st_geomfromtext('polygon((0 0,1 0,1 1,0 0))'),point(1,2)),
 (null,2,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,null,point(3,-0.5)),
 (0,3,0,0,0,0,0.1,1e300,0,b'0',0,'','','','','','','','','','','','','a','',2155,'2000-02-29','00:00:00','1970-01-01 00:00:01','2037-12-31 23:59:59','[]',null,point(0,0));
create table gen (a int not null, b int, c int as (a+b) virtual, d varchar(80) as (concat('x',a)) stored, e int default 7, f varchar(20) default 'q''\\', g timestamp default current_timestamp on update current_timestamp, primary key (a desc,b), key kc (c), constraint pos check (a > 0), check (b < 1000) );
insert into gen (a,b) values (1,2),(3,4),(5,6);
create table parents (id int primary key, name varchar(20), unique key (name)) ;
create table children (id int primary key, pid int, pname varchar(20), constraint fk1 foreign key (pid) references parents (id) on delete cascade on update set null, foreign key (pname) references parents (name));
create table farm.away (id int primary key, pid int, foreign key (pid) references zoo.parents (id));
insert into parents values (1,'A'),(2,'b'); insert into children values (1,1,'A'),(2,2,null); insert into farm.away values (1,2);
create table nokey (a int, b varchar(30)); insert into nokey values (1,'x'),(1,'x'),(2,'y'),(null,null);
create table pr (id int, d date, x varchar(10), primary key (id,d)) partition by range (year(d)) (partition p0 values less than (2000) comment 'old', partition p1 values less than (2020), partition pm values less than maxvalue);
insert into pr values (1,'1990-01-01','a'),(2,'2010-01-01','b'),(3,'2030-01-01','c');
create table ph (id int primary key, v int) partition by hash (id) partitions 3; insert into ph values (1,1),(2,2),(3,3);
create table pl (id int, r varchar(10) character set utf8mb4, key (id)) partition by list columns (r) (partition a values in ('x','y'), partition b values in ('z', null)); insert into pl values (1,'x'),(2,'z'),(3,null);
create table psub (id int, d date) partition by range (to_days(d)) subpartition by hash (id) subpartitions 2 (partition q0 values less than (to_days('2010-01-01')), partition q1 values less than maxvalue); insert into psub values (1,'2000-01-01'),(2,'2020-01-01');
create table `sel``ect` (`or-der` int primary key, `gröup` varchar(10) comment 'x;y'); insert into `sel``ect` values (1,'a');
create table strkey (k varchar(30) character set utf8mb4 primary key, v int); insert into strkey values ('a',1),('B',2),('ö',3);
create table binkey (k varbinary(16) primary key, v int); insert into binkey values (x'00ff',1),(x'27',2);
create view v1 as select id, v from kinds where id > 0; create view v0 as select id from v1 with cascaded check option;

